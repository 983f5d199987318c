package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// auditedGroup is the group of users whose requests the API server writes down.
const auditedGroup = "tidb-groups:bench"

// auditPolicy has requests of the processes that are measured written down, and no others.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["` + auditedGroup + `"]
- level: None
`

// audit is the API server's log of requests.
type audit struct{ file string }

// newAudit returns the log in a directory, and the flags of an API server that writes by a
// policy what goes into it.
func newAudit(dir, what string) (audit, map[string]string, error) {
	policy, out := filepath.Join(dir, "audit-policy.yaml"), audit{filepath.Join(dir, "audit.log")}
	if err := os.WriteFile(policy, []byte(what), 0o600); err != nil {
		return out, nil, fmt.Errorf("write audit policy: %w", err)
	}
	return out, map[string]string{"audit-policy-file": policy, "audit-log-path": out.file}, nil
}

// audited is what is read of an entry of the log (audit.k8s.io/v1, Event).
type audited struct {
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	UserAgent  string `json:"userAgent"`
	RequestURI string `json:"requestURI"`
	ObjectRef  *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	// ResponseObject is there if the policy asks for it.
	ResponseObject map[string]any `json:"responseObject"`
}

// entries returns what was written down behind a position of the log, and where that ends.
func (a audit) entries(from int) (all []audited, to int, err error) {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return nil, from, fmt.Errorf("read the API server's audit log: %w", err)
	}
	to = from
	for line := range bytes.Lines(text[from:]) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		var e audited
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, from, fmt.Errorf("read the API server's audit log: %w", err)
		}
		all, to = append(all, e), to+len(line)
	}
	return all, to, nil
}

// isFromAgents reports whether the user agent begins as one of these; as any if there are none.
func (e audited) isFromAgents(agents []string) bool {
	return len(agents) == 0 || slices.ContainsFunc(agents, func(begin string) bool { return strings.HasPrefix(e.UserAgent, begin) })
}

// counts are the requests so far, of user agents that begin as one of these; of all if
// there are none. A watch counts when it begins.
func (a audit) counts(agents []string) (out Usage, err error) {
	all, _, err := a.entries(0)
	if err != nil {
		return out, err
	}
	for _, e := range all {
		if e.Verb == "deletecollection" {
			e.Verb = apirequest.Delete
		}
		if e.ObjectRef == nil || e.Stage != stageOf(e.Verb) || !e.isFromAgents(agents) {
			continue
		}
		request := scenario.Request{Verb: e.Verb, Resource: e.ObjectRef.Resource}
		switch {
		case request.Writes():
			out.Writes++
			if request.Resource == leases {
				out.Leases++
			}
		case !apirequest.Writes(e.Verb):
			out.Reads++
		}
	}
	return out, nil
}

// leases are what processes renew all the time that may be there twice.
const leases = "leases"

// stageOf is the stage at which a request counts.
func stageOf(verb string) string {
	if verb == apirequest.Watch {
		return "ResponseStarted"
	}
	return "ResponseComplete"
}
