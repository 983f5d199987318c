package campaign

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer is a way in which a PD answers that means harm.
type answer struct {
	name string
	// lies says that it changes what PD answers, which has to be JSON for that.
	lies bool
	give func(w http.ResponseWriter, e exchange)
}

// listAnswers are all of them, by name.
func listAnswers() map[string]answer {
	out := map[string]answer{}
	for _, all := range []map[string]func(http.ResponseWriter, exchange){incompleteAnswers(), excessiveAnswers(), malformedAnswers()} {
		for name, give := range all {
			out[name] = answer{name: name, give: give}
		}
	}
	for name, change := range replyFalsifications() {
		out[name] = answer{name: name, lies: true, give: func(w http.ResponseWriter, e exchange) { falsifyReply(w, e, change) }}
	}
	out["answers-of-the-target"] = answer{name: "answers-of-the-target", lies: true, give: func(w http.ResponseWriter, e exchange) {
		if e.Method != http.MethodGet {
			forwardReply(w, e.ask)
			return
		}
		forwardReply(w, e.target)
	}}
	return out
}

// forwardReply hands on what a PD says.
func forwardReply(w http.ResponseWriter, ask func() (reply, error)) {
	answer, err := ask()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	answer.write(w)
}

const (
	// lateBy is how late an answer is that no client waits for any more.
	lateBy = 9 * time.Second
	// dripEvery is how often a byte comes of an answer that does not end.
	dripEvery = 50 * time.Millisecond
)

// incompleteAnswers are answers that do not come, or not as a whole.
func incompleteAnswers() map[string]func(http.ResponseWriter, exchange) {
	return map[string]func(http.ResponseWriter, exchange){
		"hangs": func(_ http.ResponseWriter, e exchange) { <-e.Context().Done() },
		"late": func(w http.ResponseWriter, e exchange) {
			if trySleep(e.Context(), lateBy) {
				forwardReply(w, e.ask)
			}
		},
		"drips": func(w http.ResponseWriter, e exchange) {
			for trySleep(e.Context(), dripEvery) {
				if _, err := w.Write([]byte(" ")); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush() // who asks may be gone, as the next write tells
			}
		},
		"closes": func(http.ResponseWriter, exchange) { panic(http.ErrAbortHandler) },
		"closes-mid-body": func(w http.ResponseWriter, _ exchange) {
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, `{"header":{"cluster_id":1},"members":[{"name":"a`)
			panic(http.ErrAbortHandler)
		},
		"empty": func(http.ResponseWriter, exchange) {},
		"ignored": func(w http.ResponseWriter, _ exchange) {
			_, _ = io.WriteString(w, `"The order is carried out."`)
		},
	}
}

// excessiveAnswers are answers of which there is more than anybody should take.
func excessiveAnswers() map[string]func(http.ResponseWriter, exchange) {
	// flood writes a text again and again, until who asks has enough or it is so long.
	const most = 256 << 20
	flood := func(w io.Writer, head, repeated string) {
		chunk := []byte(strings.Repeat(repeated, 1+(32<<10)/len(repeated)))
		if _, err := io.WriteString(w, head); err != nil {
			return
		}
		for sent := 0; sent < most; sent += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	body := func(head, repeated string) func(http.ResponseWriter, exchange) {
		return func(w http.ResponseWriter, _ exchange) { flood(w, head, repeated) }
	}
	head := func(begin, repeated string) func(http.ResponseWriter, exchange) {
		return func(w http.ResponseWriter, e exchange) {
			hijackConnection(w, e, func(conn net.Conn) { flood(conn, begin, repeated) })
		}
	}
	return map[string]func(http.ResponseWriter, exchange){
		"endless-body":     body(" ", " "),
		"endless-name":     body(`{"header":{"cluster_id":1},"members":[{"name":"`, "x"),
		"endless-list":     body(`{"members":[{}`, ",{}"),
		"endless-stores":   body(`{"stores":[{}`, `,{"store":{"id":1,"labels":[{"key":"a","value":"b"}]}}`),
		"endless-regions":  body(`{"regions":[{}`, `,{"id":1,"peers":[{"id":1,"store_id":2}]}`),
		"endless-keys":     body(`{"a":0`, `,"a":0`),
		"deep":             body(``, `{"a":[`),
		"endless-header":   head("HTTP/1.1 200 OK\r\nX: ", "x"),
		"endless-headers":  head("HTTP/1.1 200 OK\r\n", "X: x\r\n"),
		"endless-promises": head("", "HTTP/1.1 103 Early Hints\r\nX: x\r\n\r\n"),
		"refuses-at-length": func(w http.ResponseWriter, _ exchange) {
			w.WriteHeader(http.StatusInternalServerError)
			flood(w, "", "no leader \n")
		},
		"gzip": func(w http.ResponseWriter, _ exchange) {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			flood(packed, `{"stores":[{}`, ",{}")
			_ = packed.Close() // the client may have closed the connection
		},
	}
}

// malformedAnswers are answers that are none.
func malformedAnswers() map[string]func(http.ResponseWriter, exchange) {
	redirect := func(status int) func(http.ResponseWriter, exchange) {
		return func(w http.ResponseWriter, e exchange) {
			http.Redirect(w, e.Request, "http://"+e.elsewhere+e.URL.Path, status)
		}
	}
	bytes := func(text string) func(http.ResponseWriter, exchange) {
		return func(w http.ResponseWriter, e exchange) {
			hijackConnection(w, e, func(conn net.Conn) { _, _ = io.WriteString(conn, text) })
		}
	}
	return map[string]func(http.ResponseWriter, exchange){
		"redirect-302": redirect(http.StatusFound),
		"redirect-307": redirect(http.StatusTemporaryRedirect),
		"redirect-308": redirect(http.StatusPermanentRedirect),
		"tls":          bytes("\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03" + strings.Repeat("\x00", 111)),
		"http-0.9":     bytes("<html>it works</html>\n"),
		"wrong-chunks": bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}\r\n"),
		"two-lengths":  bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\n{}{}"),
		"no-json": func(w http.ResponseWriter, _ exchange) {
			garbage := make([]byte, 10000)
			_, _ = rand.Read(garbage) // never fails
			_, _ = w.Write(garbage)
		},
		"unauthorized": func(w http.ResponseWriter, _ exchange) {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you?\x1b[31m\n\x00", http.StatusUnauthorized)
		},
	}
}

// hijackConnection hands the connection itself over, until who asks is gone.
func hijackConnection(w http.ResponseWriter, e exchange, speak func(net.Conn)) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-e.Context().Done(): // the campaign ends
		case <-stop:
		}
		_ = conn.Close() // nothing is left to fail
	}()
	speak(conn)
}

// falsifyReply changes what PD answers.
func falsifyReply(w http.ResponseWriter, e exchange, change func(key string, v any, e exchange) any) {
	answer, err := e.ask()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if answer.isJSON() {
		text, err := json.Marshal(transformValues("", decodeJSON(answer.body), func(key string, v any) any { return change(key, v, e) }))
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		answer.body = bytes.ReplaceAll(text, []byte(notANumber), []byte("NaN"))
	}
	answer.write(w)
}

// notANumber stands for one, which json does not write.
const notANumber = "918273645546372819"

// decodeJSON is what a JSON text says, with numbers as they are written.
func decodeJSON(text []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out any
	if err := decoder.Decode(&out); err != nil {
		panic(http.ErrAbortHandler)
	}
	return out
}

// transformValues changes every value of a tree, from the leaves up. key is that of the nearest
// object.
func transformValues(key string, v any, change func(key string, v any) any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			v[name] = transformValues(name, below, change)
		}
	case []any:
		for i, below := range v {
			v[i] = transformValues(key, below, change)
		}
	}
	return change(key, v)
}

// replyFalsifications are changes of what PD answers.
func replyFalsifications() map[string]func(key string, v any, e exchange) any {
	numbers := func(n string) func(string, any, exchange) any {
		return func(_ string, v any, _ exchange) any {
			if _, is := v.(json.Number); is {
				return json.Number(n)
			}
			return v
		}
	}
	texts := func(change func(key, text string, e exchange) string) func(string, any, exchange) any {
		return func(key string, v any, e exchange) any {
			if text, is := v.(string); is {
				return change(key, text, e)
			}
			return v
		}
	}
	state := func(to string) func(string, any, exchange) any {
		return texts(func(key, text string, _ exchange) string {
			if key == "state_name" {
				return to
			}
			return text
		})
	}
	return map[string]func(string, any, exchange) any{
		"numbers-too-large": numbers("99999999999999999999999999"),
		"numbers-huge":      numbers("9223372036854775807"),
		"numbers-negative":  numbers("-7"),
		"numbers-broken":    numbers("0.5"),
		"numbers-nan":       numbers(notANumber),
		"numbers-zero":      numbers("0"),
		"texts-long":        texts(func(_, text string, _ exchange) string { return text + strings.Repeat("x", 5000) }),
		"texts-control":     texts(func(_, text string, _ exchange) string { return text + "\n\r\t\x00\x1b[31m\u202e{{.}}" }),
		"texts-empty":       texts(func(string, string, exchange) string { return "" }),
		"texts-the-same":    texts(func(string, string, exchange) string { return "a-0" }),
		"addresses-elsewhere": texts(func(_, text string, e exchange) string {
			if url, is := strings.CutPrefix(text, "http://"); is && strings.Contains(url, ":") {
				return "http://" + e.elsewhere
			}
			if _, _, err := net.SplitHostPort(text); err == nil {
				return e.elsewhere
			}
			return text
		}),
		"cluster-id-of-another": func(key string, v any, _ exchange) any {
			if _, is := v.(json.Number); is && key == "cluster_id" {
				return json.Number("4711")
			}
			return v
		},
		"stores-gone":    state("Tombstone"),
		"stores-down":    state("Down"),
		"stores-offline": state("Offline"),
		"lists-empty": func(_ string, v any, _ exchange) any {
			if _, is := v.([]any); is {
				return []any{}
			}
			return v
		},
		"lists-doubled": func(_ string, v any, _ exchange) any {
			if list, is := v.([]any); is {
				return slices.Concat(list, list)
			}
			return v
		},
		"lists-full": listsFull,
		"flags-flipped": func(_ string, v any, _ exchange) any {
			if flag, is := v.(bool); is {
				return !flag
			}
			return v
		},
		"nothing-in-it": func(_ string, v any, _ exchange) any {
			switch v.(type) {
			case map[string]any, []any:
				return v
			}
			return nil
		},
	}
}

// listsFull repeats the elements of a list with other names and IDs, up to as many as an
// operator takes.
func listsFull(_ string, v any, _ exchange) any {
	const full = 64
	list, is := v.([]any)
	if !is || len(list) == 0 {
		return v
	}
	out := slices.Clone(list)
	for n := len(list); n < full; n++ {
		element := list[n%len(list)]
		text, err := json.Marshal(element)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		out = append(out, transformValues("", decodeJSON(text), func(key string, v any) any {
			switch {
			case key == "name" || key == "address":
				return fmt.Sprintf("stranger-%d", n)
			case strings.HasSuffix(key, "id"):
				return json.Number(strconv.Itoa(1000000 + n))
			}
			return v
		}))
	}
	return out
}
