package campaign

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
)

// anywhere stands for every endpoint of PD.
const anywhere = "any"

// front stands before the PD of every PDGroup. It notes what the operators ask, and
// answers in the place of the hostile PDs when it is told to.
type front struct {
	ctx       context.Context
	databases map[string]*rig.Databases // by namespace
	hostile   string                    // the namespace in which PD means harm
	elsewhere string                    // host:port where no operator may connect
	targetPD  func() (*rig.Database, error)
	transport *http.Transport

	mu        sync.Mutex
	addresses map[types.NamespacedName]string
	asked     map[string]map[string]bool // by namespace the endpoints, and whether they answer JSON
	answer    *answer                    // that is given in PD's place, nil for none
	turns     []answer                   // one after the other in place of answer
	endpoint  string                     // at which
	struck    int
}

func newFront(ctx context.Context, hostile *rig.Rig) *front {
	return &front{
		ctx: ctx, hostile: hostile.Namespace(), databases: map[string]*rig.Databases{hostile.Namespace(): hostile.Databases},
		transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}, // each request to a member that lives now
		addresses: map[types.NamespacedName]string{}, asked: map[string]map[string]bool{},
	}
}

// dial is rig.Options.Dial.
func (f *front) dial(operator string, _ pd.Dialer) pd.Dialer {
	var options []pdclient.DialerOption
	if operator == strings.ToLower(v1alpha1.KindPDGroup) {
		options = append(options, pdclient.WithConfig())
	}
	return func(group types.NamespacedName) (pd.Client, error) {
		address, err := f.open(group)
		if err != nil {
			return nil, err
		}
		return pdclient.NewDialer("http://"+address, options...)(group)
	}
}

// open listens before the PD of a group.
func (f *front) open(group types.NamespacedName) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if address := f.addresses[group]; address != "" {
		return address, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(f.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen before the PD of %s: %w", group, err)
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return f.ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(group, w, r) }),
	}
	context.AfterFunc(f.ctx, func() { _ = server.Close() }) // nothing is left to fail
	go func() { _ = server.Serve(listener) }()              // ends when it is closed
	f.addresses[group] = listener.Addr().String()
	return f.addresses[group], nil
}

// give has the hostile PDs answer so at an endpoint, or anywhere; as they are asked if
// there are several, one after the other.
func (f *front) give(endpoint string, answers ...answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endpoint, f.answer, f.turns, f.struck = endpoint, nil, nil, 0
	if len(answers) == 1 {
		f.answer = &answers[0]
	} else {
		f.turns = answers
	}
}

// met says how often an answer was given since give.
func (f *front) met() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.struck
}

// endpoints returns what was asked in a namespace.
func (f *front) endpoints(namespace string) map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.asked[namespace])
}

// numbered is what an endpoint's path has in it that differs from one to the next: an ID,
// or the name of a member.
var numbered = regexp.MustCompile(`(^|-)[0-9]+$`)

// endpointOf names what a request asks, without IDs and names.
func endpointOf(r *http.Request) string {
	parts := strings.Split(r.URL.Path, "/")
	for i := range parts {
		parts[i] = numbered.ReplaceAllString(parts[i], "${1}~")
	}
	return r.Method + strings.Join(parts, "/")
}

// exchange is a request to a hostile PD.
type exchange struct {
	*http.Request
	// ask has PD answer.
	ask func() (reply, error)
	// target has the target's PD answer the same question, behind the operators' back.
	target func() (reply, error)
	// elsewhere is host:port where no operator may connect.
	elsewhere string
}

// reply is what a PD answers.
type reply struct {
	status int
	kind   string
	body   []byte
}

// isJSON says whether there is something in a reply that can be changed.
func (r reply) isJSON() bool {
	return r.status == http.StatusOK && len(r.body) > 0 && (r.body[0] == '{' || r.body[0] == '[') && json.Valid(r.body)
}

func (f *front) serve(group types.NamespacedName, w http.ResponseWriter, r *http.Request) {
	endpoint := endpointOf(r)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	db, err := f.databases[group.Namespace].Of(group)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if given := f.choose(group, endpoint); given != nil {
		given.give(w, exchange{Request: r, elsewhere: f.elsewhere, ask: func() (reply, error) { return f.forward(r, db, body) }, target: func() (reply, error) {
			db, err := f.targetPD()
			if err != nil {
				return reply{}, err
			}
			return f.forward(r, db, body)
		}})
		return
	}
	answer, err := f.forward(r, db, body)
	if err != nil {
		panic(http.ErrAbortHandler) // no PD answers: the connection ends, as that of its Service
	}
	if group.Name != bystander || group.Namespace != f.hostile {
		f.note(group.Namespace, endpoint, answer.isJSON())
	}
	answer.write(w)
}

// note notes that an endpoint was asked, and what kind of answer PD gave.
func (f *front) note(namespace, endpoint string, isJSON bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked[namespace] == nil {
		f.asked[namespace] = map[string]bool{}
	}
	f.asked[namespace][endpoint] = f.asked[namespace][endpoint] || isJSON
}

// forget lets endpoints begin again.
func (f *front) forget(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.asked, namespace)
}

// choose returns the answer that is given in PD's place, nil for none.
func (f *front) choose(group types.NamespacedName, endpoint string) *answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if group.Namespace != f.hostile || group.Name == bystander || f.endpoint != anywhere && f.endpoint != endpoint {
		return nil
	}
	given := f.answer
	if len(f.turns) > 0 {
		given = &f.turns[f.struck%len(f.turns)]
	}
	if given != nil {
		f.struck++
	}
	return given
}

// forward has a PD answer a request.
func (f *front) forward(r *http.Request, db *rig.Database, body []byte) (reply, error) {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+db.Address()+r.URL.RequestURI(), bytes.NewReader(body)) //nolint:gosec // to a PD of this process
	if err != nil {
		return reply{}, fmt.Errorf("ask PD of %s: %w", db.Group(), err)
	}
	request.Header = r.Header.Clone()
	response, err := f.transport.RoundTrip(request)
	if err != nil {
		return reply{}, fmt.Errorf("ask PD of %s: %w", db.Group(), err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	out := reply{status: response.StatusCode, kind: response.Header.Get("Content-Type")}
	if out.body, err = io.ReadAll(response.Body); err != nil {
		return reply{}, fmt.Errorf("read the answer of the PD of %s: %w", db.Group(), err)
	}
	return out, nil
}

func (r reply) write(w http.ResponseWriter) {
	if r.kind != "" {
		w.Header().Set("Content-Type", r.kind)
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) // the client may have closed the connection
}

// trap listens where no operator may connect, and notes who comes.
type trap struct {
	address string

	mu     sync.Mutex
	visits []string
}

func openTrap(ctx context.Context) (*trap, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a trap: %w", err)
	}
	t := &trap{address: listener.Addr().String()}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.note(r.Method + " " + r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	}), ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			t.note("a connection")
		}
	}}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // nothing is left to fail
	go func() { _ = server.Serve(listener) }()            // ends when it is closed
	return t, nil
}

func (t *trap) note(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.visits = append(t.visits, what)
}

// seen returns the visits so far, none of which is as it should be.
func (t *trap) seen() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.visits)
}
