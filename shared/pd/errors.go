package pd

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/shared/cause"
)

// ErrNotBootstrapped is PD's answer to calls about stores while no store has
// ever registered. It means "no TiKV yet", not "broken".
var ErrNotBootstrapped = errors.New("no store has registered with PD yet")

// ErrNoLeader is a member's answer that knows of no leader: it leads none itself
// and could not pass the call on. For some seconds that is an election; if it
// lasts, the quorum is lost. PD's own health and ready calls do not tell.
var ErrNoLeader = errors.New("PD has no leader")

// noLeader returns how PD spells ErrNoLeader: ErrRedirect, ErrRedirectNoLeader and
// ErrRedirectToNotLeader of v8.5 begin with the first; older members that know of none say the
// second, and those asked on behalf of another the third, while the leader changes.
func noLeader() []string {
	return []string{"[PD:apiutil:ErrRedirect", "no leader", "redirect to not leader"}
}

// notBootstrapped is how PD spells ErrNotBootstrapped.
const notBootstrapped = "[PD:cluster:ErrNotBootstrapped]"

// maxBody is how much of an answer's body an error quotes, in bytes.
const maxBody = 256

// Unreachable means that PD gave no answer.
type Unreachable struct {
	// URL that was asked, without path.
	URL string
	// Cause of the failure.
	Cause error
}

// Error describes the failure without what differs from one attempt to the
// next, such as local ports.
func (e *Unreachable) Error() string {
	return fmt.Sprintf("PD at %s does not answer: %s", e.URL, cause.Describe(e.Cause))
}

// Unwrap returns the cause.
func (e *Unreachable) Unwrap() error { return e.Cause }

// Refused means that PD answered with another status than 200.
type Refused struct {
	// Call that was refused.
	Call string
	// Status is the HTTP status.
	Status int
	// Body of the answer, one line, shortened.
	Body string
}

// Error quotes PD.
func (e *Refused) Error() string {
	if e.Body == "" {
		return fmt.Sprintf("PD refused %s with %d %s", e.Call, e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("PD refused %s with %d: %s", e.Call, e.Status, e.Body)
}

// Is makes errors.Is(err, ErrNotBootstrapped) and errors.Is(err, ErrNoLeader)
// work.
func (e *Refused) Is(target error) bool {
	return target == ErrNotBootstrapped && strings.Contains(e.Body, notBootstrapped) ||
		target == ErrNoLeader && slices.ContainsFunc(noLeader(), func(text string) bool { return strings.HasPrefix(e.Body, text) })
}

// Malformed means that PD answered 200 with something that must not be used.
type Malformed struct {
	// Call that was answered.
	Call string
	// Why the answer is of no use.
	Why string
}

// Error says why the answer is of no use.
func (e *Malformed) Error() string {
	return fmt.Sprintf("PD's answer to %s cannot be used: %s", e.Call, e.Why)
}

// Quote makes a body fit for an error message: one line, shortened.
func Quote(body []byte) string {
	text := strings.Trim(strings.Join(strings.Fields(string(body)), " "), `"`)
	if len(text) > maxBody {
		text = strings.ToValidUTF8(text[:maxBody], "") + "..."
	}
	return text
}
