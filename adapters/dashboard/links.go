package dashboard

import "net/url"

// href makes an address of a page of the dashboard and its parameters: name, value, … No page links
// out of the dashboard.
func href(page string, params ...string) string {
	values := url.Values{}
	for at := 0; at+1 < len(params); at += 2 {
		if params[at+1] != "" {
			values.Add(params[at], params[at+1])
		}
	}
	if len(values) == 0 {
		return page
	}
	return page + "?" + values.Encode()
}

// tab is one link of several; one of them may be the present page.
type tab struct {
	Text, Href string
	Current    bool
}

// hiddenField is a name and a value that a form sends without showing them.
type hiddenField struct{ Name, Value string }

// with returns the page's address with other parameters: name, value, …
func (c *call) with(params ...string) string {
	values := url.Values{}
	for name, list := range c.r.URL.Query() {
		if name != "did" && name != "n" && name != "try" {
			values[name] = list
		}
	}

	for at := 0; at+1 < len(params); at += 2 {
		values.Del(params[at])
		if params[at+1] != "" {
			values.Set(params[at], params[at+1])
		}
	}

	page := c.r.URL.Path[1:]
	if page == "" {
		page = "./"
	}

	if len(values) == 0 {
		return page
	}
	return page + "?" + values.Encode()
}

// fields makes hidden fields of the pairs that have a value: name, value, …
func fields(params ...string) (list []hiddenField) {
	for at := 0; at+1 < len(params); at += 2 {
		if params[at+1] != "" {
			list = append(list, hiddenField{params[at], params[at+1]})
		}
	}
	return list
}

// kept makes hidden fields of parameters of the page's address.
func (c *call) kept(names ...string) (list []hiddenField) {
	for _, name := range names {
		list = append(list, fields(name, c.r.URL.Query().Get(name))...)
	}
	return list
}
