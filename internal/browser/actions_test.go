package browser_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// mark marks the row of an id in a list.
func (b *tab) mark(id string) {
	b.t.Helper()
	box := fmt.Sprintf(`document.querySelector('input[name=id][value=%s]')`, quoted(id))
	b.click(id, box)
	b.until(box + "?.checked")
}

// Every action of every page, as a person does it: by a pointer, in view, with the question and
// the result. Under -short it is five actions of different kinds, on a desk.
func TestActions(t *testing.T) {
	if testing.Short() {
		actBriefly(t)
		return
	}
	for _, l := range []look{desk, {width: 400, height: 800}, {width: 1280, height: 900, plain: true}} {
		t.Run(fmt.Sprintf("%d without scripts %v", l.width, l.plain), func(t *testing.T) { act(t, l) })
	}
}

// act acts once in each way. The steps follow from one another.
func act(t *testing.T, l look) {
	h := newHouse(t, dashboard.Options{})
	b := h.tab(l)
	for n := range 6 {
		h.push(h.orders, fmt.Sprintf("dead-%d", n), 0, "die")
		h.push(h.orders, fmt.Sprintf("failed-%d", n), 0, "fail")
		h.push(h.orders, fmt.Sprintf("later-%d", n), time.Hour, "done")
	}
	h.push(h.orders, "runs-1", 0, "run")
	h.push(h.orders, "runs-2", 0, "run")
	h.declare(h.paused)
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Dead == 6 && s.Retrying == 6 && s.Claimed == 2 })

	b.open("queue?q=orders")
	b.press("Pause the queue")
	b.says("The queue is paused. Its waiting jobs are not claimed.")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Queue.Paused })
	b.press("Resume the queue")
	b.says("The queue is active.")
	b.press("Recount")
	b.says("The queue was recounted.")
	b.open("queue?q=paused")
	b.press("Forget …")
	b.says("This can't be undone.")
	b.press("Forget the queue")
	b.says("The queue is forgotten.")

	b.jobs(h)
	b.dead(h)
	b.running(h)
	b.servers(h)
	b.schedules(h, l)
	b.isClean("the actions")
}

// actBriefly acts on a queue, on a marked row, on an id's page, on all that match, and on a running
// job.
func actBriefly(t *testing.T) {
	h := newHouse(t, dashboard.Options{})
	b := h.tab(desk)
	for n := range 4 {
		h.push(h.orders, fmt.Sprintf("dead-%d", n), 0, "die")
	}
	h.push(h.orders, "runs-1", 0, "run")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Dead == 4 && s.Claimed == 1 })

	b.open("morgue?q=orders")
	b.mark("dead-0")
	b.press("Revive")
	b.says("1 queued again")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Dead == 4 && s.Fresh == 0 && s.Retrying == 0 })
	b.open(at("id", "q", "orders", "id", "dead-1"))
	b.edit("die", "mended\nin two lines")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Dead == 3 && s.Processed == 1 })
	b.open("morgue?q=orders")
	b.press("purge …")
	b.says("3 match")
	b.press("Purge 3")
	b.says("3 removed permanently")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Dead == 0 && s.Claimed == 1 })
	b.open("busy")
	b.within(`[...document.querySelectorAll("tr")].find((e) => e.textContent.includes("runs-1"))`, "drop …")
	b.press("Cancel and drop")
	b.says("cancelled, to be dropped")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Claimed == 0 })
	b.open("queue?q=orders")
	b.press("Pause the queue")
	b.says("The queue is paused. Its waiting jobs are not claimed.")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Queue.Paused })
	b.isClean("the actions")
}

// schedules acts on schedules. The pages that only actions lead to are checked for what people with
// poor eyesight can't use, by a script.
func (b *tab) schedules(h *house, l look) {
	b.t.Helper()
	check := func(what string) {
		if !l.plain {
			b.isAccessible(what)
		}
	}
	yearly := skein.Cron("30 0 1 1 *", "Europe/Madrid")
	h.must(h.orders.Schedule(h.t.Context(), h.client, "yearly", yearly, "tenant-7", []byte("done")))
	b.open("schedules")
	b.press("Pause …")
	b.says("Pause the schedule yearly of tenant-7 in orders?")
	b.do(chromedp.SetValue("input[name=reason]", "the bank is closed"))
	b.press("Pause")
	b.says("No tick fires until it is resumed.")
	b.says("“the bank is closed”")

	b.open(at("schedule", "q", "orders", "name", "yearly", "id", "tenant-7"))
	b.do(chromedp.SetValue("input[name=from]", "2001-01-01T00:00"),
		chromedp.SetValue("input[name=to]", "2005-01-01T00:30"))
	b.press("Preview")
	b.says("4 ticks of at most 1,000.")
	b.press("Push 4")
	b.says("4 pushed, one for each past tick of the range.")
	b.says("Last backfill: 4 ticks")
	check("a schedule that is paused, and has a backfill")
	b.open(at("named", "q", "orders", "name", "yearly", "state", "paused"))
	b.press("Resume all …")
	b.says("Resume the schedules yearly of the only id with it in orders?")
	check("the question of an action on all schedules of a name")
	b.open(at("schedule", "q", "orders", "name", "yearly", "id", "tenant-7"))
	b.press("Remove …")
	b.press("Remove")
	b.says("The schedule is removed.")
}

// edit replaces the payload that has a text, on an id's page, and revives the dead letter.
func (b *tab) edit(text, by string) {
	b.t.Helper()
	b.unfold(text)
	b.unfold("edit")
	b.do(chromedp.SetValue("textarea", by))
	b.press("Show the change …")
	b.says("nothing is written yet")
	b.fits("the change of a payload")
	b.isAccessible("the change of a payload")
	b.press("Store and revive")
	b.says("queued again")
}

// jobs acts on queued jobs.
func (b *tab) jobs(h *house) {
	b.t.Helper()
	b.open("jobs?q=orders&list=scheduled")
	b.mark("later-0")
	b.mark("later-1")
	b.press("Run now")
	b.says("2 made due")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Processed == 2 })
	b.open("jobs?q=orders&list=scheduled")
	b.mark("later-2")
	b.press("Bury")
	b.says("1 moved to the morgue")
	b.open("jobs?q=orders&list=retries")
	b.mark("failed-0")
	b.press("Delete …")
	b.says("failed-0")
	b.press("Delete")
	b.says("1 deleted")
	b.press("delete …")
	b.says("5 match of")
	b.press("No")
	b.press("bury …")
	b.says("5 match of")
	b.press("Bury 5")
	b.says("5 moved to the morgue")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Dead == 12 && s.Retrying == 0 && s.Fresh == 3 })
	b.open(at("id", "q", "orders", "id", "later-3"))
	b.press("Run now")
	b.says("1 made due")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Processed == 3 })
}

// dead acts on dead letters.
func (b *tab) dead(h *house) {
	b.t.Helper()
	b.open("morgue?q=orders")
	b.mark("later-2")
	b.press("Revive")
	b.says("1 queued again")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Dead == 11 && s.Processed == 4 })
	b.open("morgue?q=orders")
	b.mark("dead-0")
	b.press("Purge …")
	b.press("Purge")
	b.says("1 removed permanently")
	b.open(at("id", "q", "orders", "id", "dead-1"))
	b.edit("die", "mended\nin two lines")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Dead == 9 && s.Processed == 5 })
	b.open("morgue?q=orders")
	b.press("purge …")
	b.do(chromedp.SetValue("input[name=error]", "die"))
	b.press("Preview")
	b.says("4 match of 9")
	b.press("Purge 4")
	b.says("4 removed permanently")
	b.open("morgue?q=orders")
	b.press("revive …")
	b.press("Revive 5")
	b.says("5 queued again")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Dead == 0 && s.Retrying == 5 })
	b.open("unreadable?q=orders")
	b.press("Discard …")
	b.press("Discard")
	b.says("The record is removed.")
}

// unfold opens the folded parts of a payload under a text.
func (b *tab) unfold(text string) {
	b.t.Helper()
	if !eval[bool](b, fmt.Sprintf(`(() => {
	  const e = [...document.querySelectorAll(".payload summary")].find((e) => e.innerText.includes(%s) && e.getClientRects().length);
	  if (e) e.parentElement.open = true;
	  return !!e;
	})()`, quoted(text))) {
		b.t.Fatalf("nothing with %q can be unfolded: %s", text, b.text())
	}
}

// running acts on running jobs.
func (b *tab) running(h *house) {
	b.t.Helper()
	b.open("busy")
	b.within(`[...document.querySelectorAll("tr")].find((e) => e.textContent.includes("runs-1"))`, "put back")
	b.says("cancelled, to be put back")
	b.open("busy")
	b.within(`[...document.querySelectorAll("tr")].find((e) => e.textContent.includes("runs-2"))`, "drop …")
	b.press("Cancel and drop")
	b.says("cancelled, to be dropped")
	h.sees("orders", func(s *ports.QueueStats) bool { return s.Claimed <= 1 })
}

// servers drains a server and lets it work again.
func (b *tab) servers(h *house) {
	b.t.Helper()
	b.open("nodes")
	b.press("Drain")
	b.says("The server drains. It gives up its shards.")
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		b.open("nodes")
		if strings.Contains(b.text(), "draining") {
			break
		}
		if time.Now().After(end) {
			b.t.Fatalf("the server never drains: %s", b.text())
		}
	}
	b.press("Work again")
	b.says("The server takes shards again.")
}

// declare makes a queue known.
func (h *house) declare(q *skein.Queue[[]byte]) {
	h.t.Helper()
	h.push(q, "one", 0, "p")
	_, err := h.inspect.Delete(h.t.Context(), q.Name(), inspect.JobIDs("one"))
	h.must(err)
}
