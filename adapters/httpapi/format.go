package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/shown"
)

// format is how a reply is written.
type format struct {
	mediaType string
	write     func(any) ([]byte, error)
}

// formats in order of preference. The first is for all replies, the others for lists.
var formats = []format{
	{"application/json", json.Marshal},
	{"application/jsonl", jsonLines},
	{"text/csv", asCSV},
}

// accepted returns the format that a client prefers, among the available ones.
func accepted(r *http.Request, rows bool) (format, error) {
	candidates := formats[:1]
	if rows {
		candidates = formats
	}

	ranges := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(ranges) == "" {
		return candidates[0], nil
	}

	best, quality := format{}, 0.0
	for _, f := range candidates {
		if q := qualityOf(ranges, f.mediaType); q > quality {
			best, quality = f, q
		}
	}

	if quality == 0 {
		return best, service.ProblemNotAcceptable.With("lists are available as application/json, " +
			"application/jsonl and text/csv, other replies as application/json")
	}
	return best, nil
}

// qualityOf returns the client's preference for a media type, by the closest range of Accept.
func qualityOf(ranges, mediaType string) (quality float64) {
	kind, _, _ := strings.Cut(mediaType, "/")
	closest := -1

	for part := range strings.SplitSeq(ranges, ",") {
		wanted, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		if wanted == "application/x-ndjson" || wanted == "application/x-jsonlines" {
			wanted = "application/jsonl"
		}

		close := slices.Index([]string{"*/*", kind + "/*", mediaType}, wanted)
		if close < 0 || close < closest {
			continue
		}

		q := 1.0
		if text, given := params["q"]; given {
			if q, err = strconv.ParseFloat(text, 64); err != nil || !(q >= 0 && q <= 1) {
				q = 0
			}
		}
		closest, quality = close, q
	}

	return quality
}

// answer writes a reply. A reply that clients poll has an ETag, which covers everything but as_of.
// The reply is not sent again to a client that has it.
func (a *API) answer(w http.ResponseWriter, r *http.Request, route *route, f format, reply any) error {
	h := w.Header()
	if route.rows {
		h.Set("Vary", "Accept")
	}

	if route.polled {
		tag, err := etag(f, reply)
		if err != nil {
			return err
		}
		h.Set("ETag", tag)
		if knows(r.Header.Values("If-None-Match"), tag) {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}

	body, err := f.write(reply)
	if err != nil {
		return err
	}

	if l, ok := reply.(listed); ok {
		l.Describe(h)
	}
	h.Set("Content-Type", f.mediaType)
	if f.mediaType == "text/csv" {
		h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	}

	respond(w, r, http.StatusOK, body)
	return nil
}

func respond(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // an error means that the client is gone
	}
}

// etag returns a weak tag of a reply's content, without its as_of.
func etag(f format, reply any) (string, error) {
	if v := reflect.ValueOf(reply).Elem(); v.Kind() == reflect.Struct {
		if asOf := v.FieldByName("AsOf"); asOf.IsValid() {
			was := reflect.ValueOf(asOf.Interface())
			asOf.SetZero()
			defer asOf.Set(was)
		}
	}
	// The tag of a CSV is also that of the whole content, headers included.
	body, err := json.Marshal(reply)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(body, f.mediaType...))
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, nil
}

// knows reports whether If-None-Match has a tag.
func knows(headers []string, tag string) bool {
	for part := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		if part = strings.TrimSpace(part); part == "*" ||
			strings.TrimPrefix(part, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// listed is a reply that is a list.
type listed interface {
	// Rows returns the elements, a slice of structs.
	Rows() any
	Describe(http.Header)
}

// jsonLines writes a JSON value for each row.
func jsonLines(reply any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	rows := reflect.ValueOf(reply.(listed).Rows())
	for at := range rows.Len() {
		if err := encoder.Encode(rows.Index(at).Interface()); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// asCSV writes a line of names and a line for each row. A value with several parts, such as
// payloads, is JSON in its cell.
func asCSV(reply any) ([]byte, error) {
	rows := reflect.ValueOf(reply.(listed).Rows())
	fields := shown.Fields(recordOf(rows.Type().Elem()))
	var b bytes.Buffer
	w := csv.NewWriter(&b)

	line := make([]string, len(fields))
	for at, f := range fields {
		line[at] = f.Name
	}
	err := w.Write(line)

	for at := 0; at < rows.Len() && err == nil; at++ {
		row := rows.Index(at).Interface().(interface{ Object() *shown.Object })
		for n, v := range row.Object().Values {
			if line[n], err = cell(shown.ForJSON(v)); err != nil {
				return nil, err
			}
		}
		err = w.Write(line)
	}

	w.Flush()
	if err == nil {
		err = w.Error()
	}
	return b.Bytes(), err
}

func cell(v any) (string, error) {
	switch of := v.(type) {
	case nil:
		return "", nil
	case string:
		return of, nil
	case *string:
		if of == nil {
			return "", nil
		}
		return *of, nil
	case time.Time:
		if of.IsZero() {
			return "", nil
		}
		return of.Format(time.RFC3339Nano), nil
	}

	of := reflect.ValueOf(v)
	if of.Kind() == reflect.Slice && of.Len() == 0 || of.Kind() == reflect.Pointer && of.IsNil() {
		return "", nil
	}
	if of.CanInt() || of.CanUint() || of.CanFloat() || of.Kind() == reflect.Bool {
		return fmt.Sprint(v), nil
	}
	text, err := json.Marshal(v)
	return string(text), err
}
