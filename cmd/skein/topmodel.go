package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// The panes of a page, between which tab changes.
const (
	paneQueues = iota
	paneNodes
)

// topModel is the live page of top. Keys and looks change it, and it draws itself. Only one look
// runs at a time.
type topModel struct {
	// look reads the store, and act carries out a confirmed action. Both run concurrently with the
	// page.
	look     func() topFrame
	act      func(do func(context.Context, *inspect.Inspector) error) error
	interval time.Duration

	frame         topFrame
	width, height int
	colour        bool
	sorting       int
	filter        string
	typing        bool
	helping       bool
	pane          int
	// selected has the name of the selected queue and the owner id of the selected server, whose rows
	// may change with a look.
	selected [2]string
	asking   *topQuestion
	note     string
}

// topQuestion is an action that awaits confirmation.
type topQuestion struct {
	text, done string
	do         func(context.Context, *inspect.Inspector) error
}

// The messages to the model besides keys.
type (
	topTick  time.Time
	topRest  struct{}
	topSeen  struct{ frame topFrame }
	topActed struct {
		done string
		err  error
	}
)

// Init implements tea.Model.
func (m *topModel) Init() tea.Cmd { return tea.Batch(topClock(), m.rest(0)) }

func topClock() tea.Cmd {
	return tea.Tick(time.Second, func(now time.Time) tea.Msg { return topTick(now) })
}

// rest waits before the next look. The pause grows with the duration of the last look, up to
// watchRest, so that looks cost a healthy store at most about a hundredth of its time.
func (m *topModel) rest(took time.Duration) tea.Cmd {
	return tea.Tick(max(m.interval, service.RestAfter(took, 0, watchRest)),
		func(time.Time) tea.Msg { return topRest{} })
}

// Update implements tea.Model.
func (m *topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 20), max(msg.Height, 5)
	case topTick:
		m.frame.now = time.Time(msg)
		return m, topClock()
	case topRest:
		return m, m.see()
	case topSeen:
		took := msg.frame.took
		m.frame = msg.frame
		return m, m.rest(took)
	case topActed:
		m.note = msg.done
		if msg.err != nil {
			m.note = msg.err.Error()
		}
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

// see returns the command that calls look.
func (m *topModel) see() tea.Cmd {
	look := m.look
	return func() tea.Msg { return topSeen{look()} }
}

// View implements tea.Model.
func (m *topModel) View() tea.View {
	v := tea.NewView(strings.Join(m.page(), "\n"))
	v.AltScreen = true
	return v
}

// key carries out a key's action.
func (m *topModel) key(key string) tea.Cmd {
	m.note = ""
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case m.asking != nil:
		return m.answer(key)
	case m.typing:
		m.typeKey(key)
		return nil
	case m.helping:
		m.helping = false
		return nil
	}

	switch key {
	case "q":
		return tea.Quit
	case "?", "h":
		m.helping = true
	case "s":
		m.sorting = (m.sorting + 1) % len(topSorts)
	case "/":
		m.typing = true
	case "esc":
		m.filter = ""
	case "tab":
		m.pane = (m.pane + 1) % 2
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "p", "r", "d", "u":
		m.ask(key)
	}
	return nil
}

// typeKey edits the filter.
func (m *topModel) typeKey(key string) {
	switch text := []rune(m.filter); {
	case key == "enter":
		m.typing = false
	case key == "esc":
		m.typing, m.filter = false, ""
	case key == "backspace" && len(text) > 0:
		m.filter = string(text[:len(text)-1])
	case key == "space":
		m.filter += " "
	case len([]rune(key)) == 1:
		m.filter += key
	}
}

// names returns the names that identify the rows of a pane, in order: of queues their names, of
// servers their owner ids.
func (m *topModel) names(pane int) (names []string) {
	if pane == paneNodes {
		for _, n := range m.nodes() {
			names = append(names, n.Owner)
		}
		return names
	}
	for _, s := range m.queues() {
		names = append(names, s.Queue.Name)
	}
	return names
}

// at returns the row of the selected entry in a pane, or the first row if the entry no longer
// exists.
func (m *topModel) at(pane int) int {
	for at, name := range m.names(pane) {
		if name == m.selected[pane] {
			return at
		}
	}
	return 0
}

// paneCursor returns the selected row of a pane, or -1 if keys act on the other pane.
func (m *topModel) paneCursor(pane int) int {
	if pane != m.pane {
		return -1
	}
	return m.at(pane)
}

func (m *topModel) move(by int) {
	if names := m.names(m.pane); len(names) > 0 {
		m.selected[m.pane] = names[min(max(m.at(m.pane)+by, 0), len(names)-1)]
	}
}

// ask asks for confirmation of a key's action.
func (m *topModel) ask(key string) {
	pane := map[string]int{"p": paneQueues, "r": paneQueues, "d": paneNodes, "u": paneNodes}[key]
	if m.pane = pane; len(m.names(pane)) == 0 {
		return
	}

	name := m.names(pane)[m.at(pane)]
	m.selected[pane] = name
	shown := quoted(name)
	if pane == paneNodes {
		shown = quoted(m.nodes()[m.at(pane)].Name)
	}

	q := map[string]topQuestion{
		"p": {
			"Pause queue %s?",
			"queue %s is paused",
			func(ctx context.Context, i *inspect.Inspector) error { return i.Pause(ctx, name) },
		},
		"r": {
			"Resume queue %s?",
			"queue %s is resumed",
			func(ctx context.Context, i *inspect.Inspector) error { return i.Resume(ctx, name) },
		},
		"d": {
			"Drain server %s?",
			"server %s drains",
			func(ctx context.Context, i *inspect.Inspector) error { return i.Drain(ctx, name, true) },
		},
		"u": {
			"End the drain of server %s?",
			"server %s takes shards again",
			func(ctx context.Context, i *inspect.Inspector) error { return i.Drain(ctx, name, false) },
		},
	}[key]

	q.text, q.done = fmt.Sprintf(q.text, shown), fmt.Sprintf(q.done, shown)
	m.asking = &q
}

// answer carries out the action in question if the key is y.
func (m *topModel) answer(key string) tea.Cmd {
	q, act := m.asking, m.act
	m.asking = nil
	if key != "y" {
		m.note = "nothing was changed"
		return nil
	}
	return func() tea.Msg { return topActed{q.done, act(q.do)} }
}

// liveTop shows the page on a terminal until a key or ctx ends it.
func (a *app) liveTop(ctx context.Context, t *top, interval time.Duration) error {
	if t.look(ctx); t.failed != nil && !isPartial(t.failed) {
		return t.failed
	}

	m := &topModel{
		interval: interval,
		width:    80,
		height:   24,
		colour:   a.env("NO_COLOR") == "",
		frame:    topFrame{*t, time.Now()},
		look: func() topFrame {
			t.look(ctx)
			return topFrame{*t, time.Now()}
		},
		act: func(do func(context.Context, *inspect.Inspector) error) error {
			ctx, stop := context.WithTimeout(ctx, topPatience)
			defer stop()
			return do(ctx, t.inspector)
		},
	}

	_, err := tea.NewProgram(
		m,
		tea.WithContext(ctx),
		tea.WithInput(a.stdin),
		tea.WithOutput(a.screen),
		tea.WithoutSignalHandler(),
	).Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}
