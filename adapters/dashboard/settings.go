package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// settingsBody is the page on which an operator changes the settings of a queue: the form, and the
// preview of what it would change.
type settingsBody struct {
	Queue string
	// Version is that of the settings that the form was filled with. Last describes their last change,
	// and Following which servers follow it.
	Version         int64
	Last, Following string
	Broken          bool
	Fields          []settingField
	// Unknown are the settings that are set and that only newer versions know.
	Unknown []settingField
	// Wrong is why the change is not accepted. Conflict is true if somebody else has changed the
	// settings; the form then has the present ones, and Asked is the change that was refused.
	Wrong    string
	Conflict bool
	Asked    []string
	// Previewed is true if the form was sent. Changes are then what it would change, and Effect is what
	// that does to dead letters.
	Previewed bool
	Changes   []changedSetting
	Effect    string
	Hidden    []hiddenField
	Reason    string
	Back      string
}

// settingField is a field of the form.
type settingField struct {
	Name, About, Accepts string
	// Value is the text in the field: that of the setting, or empty if it is unset.
	Value string
	// InForce is the value that applies, and From where it is from.
	InForce, From string
	// Drop is true if an unknown setting is to be unset.
	Drop bool
}

// changedSetting is a setting that a change would change.
type changedSetting struct{ Name, Before, After string }

// settingsForm is the change that a form names.
type settingsForm struct {
	set     map[string]string
	unset   []string
	version int64
}

// settingsFormOf reads the change of settings in a form. A field that is empty unsets.
func settingsFormOf(form url.Values) (f settingsForm, err error) {
	if f.version, err = strconv.ParseInt(form.Get("version"), 10, 64); err != nil {
		return f, errForm
	}
	f.set = map[string]string{}
	for _, kind := range core.DescribedSettings() {
		switch value := strings.TrimSpace(form.Get(kind.Name)); {
		case value != "":
			f.set[kind.Name] = value
		case form.Has(kind.Name):
			f.unset = append(f.unset, kind.Name)
		}
	}
	f.unset = append(f.unset, form["unset"]...)
	return f, nil
}

// body returns the change as an input of the service.
func (f *settingsForm) body(dry bool) *service.SettingsBody {
	return &service.SettingsBody{Set: f.set, Unset: f.unset, Version: &f.version, DryRun: dry}
}

// settingsPage shows the form, and previews a change.
func (c *call) settingsPage() (*view, error) {
	if err := c.admitPreview(); err != nil {
		return nil, err
	}
	s, stats, err := c.of()
	if err != nil {
		return nil, err
	}
	back := href("queue", "q", c.queue)
	if !c.may().To("configure") {
		p := newProblem(http.StatusForbidden, "Not allowed", "You don't have permission to change settings.")
		return nil, leadingBack(p, back)
	}

	settings := inspect.SettingsOf(&stats.Queue, s.view.Nodes)
	b := settingsBodyOf(&settings, stats.Now)
	b.Back = back
	v := &view{page: "settings", title: c.queue + ": settings", body: b}
	q := c.r.URL.Query()
	if !q.Has("version") {
		return v, nil
	}

	f, err := settingsFormOf(q)
	if err != nil {
		return nil, leadingBack(err, back)
	}
	reply, err := asked(c, service.Configure, c.queue, f.body(true))
	if err != nil {
		return v, b.refused(v, &settings, &f, stats.Now, err)
	}
	b.fill(&f)
	b.preview(&f, reply)
	if b.Effect, err = c.morgueEffect(stats, reply); err != nil {
		return nil, leadingBack(err, back)
	}
	return v, nil
}

// settingsBodyOf returns the page of settings as they are.
func settingsBodyOf(of *inspect.QueueSettings, now time.Time) *settingsBody {
	b := &settingsBody{
		Queue:     of.Queue,
		Version:   of.Version,
		Broken:    of.Broken,
		Following: service.Following(of),
	}
	if of.Version > 0 && !of.Broken {
		b.Last = service.Changed(of.By, of.At, now)
	}

	for at := range of.Settings {
		s := &of.Settings[at]
		field := settingField{
			Name:    s.Name,
			About:   s.About,
			Accepts: s.Accepts,
			InForce: service.InForce(s),
			From:    service.SettingOrigin(s, now),
		}
		if s.Set {
			field.Value = service.SettingText(s.Name, s.Value)
		}
		if s.About == "" {
			b.Unknown = append(b.Unknown, field)
		} else {
			b.Fields = append(b.Fields, field)
		}
	}
	return b
}

// fill puts the values of a form into the fields.
func (b *settingsBody) fill(f *settingsForm) {
	b.Version = f.version
	for at := range b.Fields {
		b.Fields[at].Value = f.set[b.Fields[at].Name]
	}
	for at := range b.Unknown {
		b.Unknown[at].Drop = slices.Contains(f.unset, b.Unknown[at].Name)
	}
}

// preview adds what a form would change.
func (b *settingsBody) preview(f *settingsForm, reply *service.SettingsReply) {
	b.Previewed = true
	before, after := reply.Before.Settings(), reply.After.Settings()
	value := func(s *core.Settings, name string) string {
		set, ok := s.Find(name)
		if !ok {
			return "unset"
		}
		return service.SettingValue(name, set.Value)
	}
	for _, name := range reply.Changed {
		b.Changes = append(b.Changes, changedSetting{name, value(before, name), value(after, name)})
	}

	b.Hidden = fields("version", strconv.FormatInt(f.version, 10))
	for _, name := range reply.Changed {
		if set, ok := after.Find(name); ok {
			b.Hidden = append(b.Hidden, hiddenField{name, set.Value})
		} else {
			b.Hidden = append(b.Hidden, hiddenField{"unset", name})
		}
	}
}

// refused completes the page of a form that the service has refused. It returns the error instead if
// the page can't show it.
func (b *settingsBody) refused(v *view, of *inspect.QueueSettings, f *settingsForm, now time.Time, err error) error {
	refusal := problemOf(err)
	switch {
	case refusal == nil:
		return err
	case refusal.Settings != nil:
		// The form gets the present settings, so that nobody undoes a change unseen.
		fresh := *of
		fresh.Version, fresh.By, fresh.At = refusal.Settings.Version, refusal.Settings.By, refusal.Settings.At
		fresh.Settings = presentStates(of.Settings, refusal.Settings)
		present := settingsBodyOf(&fresh, now)
		present.Back, present.Conflict, present.Asked = b.Back, true, f.texts()
		present.Following = ""
		present.Wrong = refusal.Detail
		*b = *present
	case refusal.Status == http.StatusBadRequest:
		b.fill(f)
		b.Wrong = refusal.Detail
	default:
		return leadingBack(err, b.Back)
	}
	v.status = refusal.Status
	return nil
}

// texts returns the change as texts, such as "max-running=20".
func (f *settingsForm) texts() (list []string) {
	for name, value := range f.set {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	for _, name := range f.unset {
		list = append(list, name+" unset")
	}
	return list
}

// presentStates returns the states of settings with other values that are set.
func presentStates(states []inspect.SettingState, present *service.SetSettings) []inspect.SettingState {
	q := inspect.Queue{Settings: inspect.StoredSettings{Settings: *present.Settings()}}
	fresh := inspect.SettingsOf(&q, nil).Settings
	for at := range fresh {
		for _, before := range states {
			if before.Name != fresh[at].Name {
				continue
			}
			fresh[at].Code = before.Code
			if !fresh[at].Set && len(before.Code) == 1 {
				fresh[at].InForce = before.Code[0].Value
			}
		}
	}
	return fresh
}

// morgueEffect describes what a change does to the dead letters of the queue.
func (c *call) morgueEffect(stats *inspect.QueueStats, reply *service.SettingsReply) (string, error) {
	before, after := reply.Before.Settings(), reply.After.Settings()
	if service.MorgueEffect(before, after, 0, stats.Now, stats.Now) == "" {
		return "", nil
	}

	oldest := stats.Now
	page, err := asked(c, service.Morgue, c.queue, &service.MorgueQuery{
		Sort: "time", PageQuery: service.PageQuery{Limit: 1},
	})
	if err != nil {
		return "", err
	}
	if len(page.Items) > 0 {
		oldest = page.Items[0].Value().ChangedAt
	}
	return service.MorgueEffect(before, after, stats.Dead, oldest, stats.Now), nil
}

// configure changes the settings as the form of a preview names it.
func (c *call) configure() (int, error) {
	f, err := settingsFormOf(c.r.PostForm)
	if err != nil {
		return 0, err
	}
	_, err = asked(c, service.Configure, c.queue, f.body(false))
	return 0, err
}

// configuring shows the page of settings after a change that was refused.
func (c *call) configuring(failed error) (*view, error) {
	if p := problemOf(failed); p == nil || p.Settings == nil {
		return nil, failed
	}
	s, stats, err := c.of()
	if err != nil {
		return nil, err
	}
	f, err := settingsFormOf(c.r.PostForm)
	if err != nil {
		return nil, err
	}

	settings := inspect.SettingsOf(&stats.Queue, s.view.Nodes)
	b := settingsBodyOf(&settings, stats.Now)
	b.Back = href("queue", "q", c.queue)
	v := &view{page: "settings", title: c.queue + ": settings", body: b}
	if err := b.refused(v, &settings, &f, stats.Now, failed); err != nil {
		return nil, err
	}
	b.Reason = c.r.PostForm.Get("reason")
	return v, nil
}

// removal states from when on servers remove dead letters by bounds that are new.
type removal struct {
	Bounds string
	At     when
	Dead   int64
}

// removalOf returns the removal of dead letters that is to begin, or nil.
func removalOf(of *inspect.QueueSettings, nodes []inspect.Node, stats *inspect.QueueStats) *removal {
	var bounds []string
	var begins time.Time
	for _, name := range []string{core.SettingMorgueAge, core.SettingMorgueCount} {
		s := of.Find(name)
		if s == nil || s.InForce == "" || service.SettingText(name, s.InForce) == "0" {
			continue
		}
		bounds = append(bounds, name+" "+service.SettingText(name, s.InForce))

		// A bound in code begins on each server that starts. The first one is what people must know of.
		since := s.At
		if !s.Set {
			since = firstStart(nodes, of.Queue)
		}
		if at := since.Add(core.RetentionGrace); begins.IsZero() || at.Before(begins) {
			begins = at
		}
	}
	if len(bounds) == 0 || !begins.After(stats.Now) {
		return nil
	}
	return &removal{strings.Join(bounds, ", "), when{begins, stats.Now}, stats.Dead}
}

// firstStart returns when the first of the running servers of a queue has started.
func firstStart(nodes []inspect.Node, queue string) (first time.Time) {
	for at := range nodes {
		n := &nodes[at]
		if n.State != inspect.NodeGone && slices.Contains(n.Queues, queue) &&
			(first.IsZero() || n.StartedAt.Before(first)) {
			first = n.StartedAt
		}
	}
	return first
}

// setOf returns a setting of a queue that an operator has set.
func (s *snapshot) setOf(queue, name string) (set core.Setting, ok bool) {
	for at := range s.view.Stats {
		if q := &s.view.Stats[at].Queue; q.Name == queue {
			return q.Settings.Find(name)
		}
	}
	return core.Setting{}, false
}

// setter returns who has set a setting, in a few characters.
func setter(set *core.Setting) string {
	if set.By == "" {
		return "an operator"
	}
	return cutName(shown(set.By), 20)
}

// Text returns the removal as a sentence.
func (r *removal) Text() string {
	has := "the queue has no dead letter now"
	if r.Dead > 0 {
		has = fmt.Sprintf("the queue has %s", plural(r.Dead, "dead letter"))
	}
	return fmt.Sprintf("Servers begin to remove dead letters by %s; %s.", r.Bounds, has)
}
