package httpapi

import (
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/service"
)

// deadBy pushes jobs that go to the morgue for errors of a group.
func (h *house) deadBy(group string, ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		h.push(id, 0, "p")
	}
	for index := range houseShards {
		for claims := h.turn(index, core.MaxTurnJobs); len(claims) > 0; claims = h.turn(index, core.MaxTurnJobs) {
			var settle []core.Settlement
			for at := range claims {
				settle = append(settle, core.RetryPolicy{}.Settlement(&claims[at], &core.Outcome{
					Kind:  core.Buried,
					Error: group,
					Group: group,
				}, 0))
			}
			h.turn(index, 0, settle...)
		}
	}
}

func TestGroupsAreListedAndActedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.deadBy("timeout of shard #", "a", "b", "c")
		h.deadBy("no such customer", "d")
		groups := get[groupsReply](h, "/queues/orders/groups")
		if len(groups.Items) != 2 || groups.Items[0].Name != "timeout of shard #" || groups.Items[0].Count != 3 ||
			groups.Total != 2 || groups.Dead != 4 {
			t.Fatalf("%+v", groups)
		}
		query := "?group=" + url.QueryEscape(groups.Items[0].Group)
		if page := get[list[deadRow]](h, "/queues/orders/morgue"+query); len(page.Items) != 3 ||
			page.Items[0].Group != groups.Items[0].Group {
			t.Errorf("%+v", page)
		}
		if one := get[groupsReply](h, "/queues/orders/groups?limit=1"); len(one.Items) != 1 || one.Total != 2 {
			t.Errorf("%+v", one)
		}
		reply := post[service.BulkReply](h, "/queues/orders/morgue/revive",
			service.BulkBody{Match: &service.Match{Group: service.Given(groups.Items[0].Group)}})
		if reply.Handled != 3 || h.letters() != 1 {
			t.Errorf("%+v", reply)
		}
		refused(t, "sorted by id",
			answerOf(h.api, request(http.MethodGet, base+"/queues/orders/morgue"+query+"&sort=id", "")),
			400, "invalid-options")
		refused(t, "a state of dead letters",
			answerOf(h.api, request(http.MethodPost, base+"/queues/orders/morgue/purge", `{"match":{"state":"held"}}`)),
			400, "bad-request")
	})
}
