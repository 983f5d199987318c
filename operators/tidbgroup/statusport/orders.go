package statusport

import (
	"cmp"
	"context"
	"crypto/tls"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/question"
)

// ordersAtOnce bounds how many groups' orders are under way at the same time.
const ordersAtOnce = 64

// orderTimeout bounds an order: TiDB answers to /upgrade/start when the owner of
// its DDL has come to know of it.
const orderTimeout = 30 * time.Second

// serverTimeout bounds what one server is given of it while there are others: TiDB
// waits for the owner for 10 s (startUpgrade of its ClusterUpgradeHandler). One that
// does not answer at all must not be the only one that is asked.
const serverTimeout = 12 * time.Second

// Verb is what TiDB is notified of in an upgrade: the last part of the path of the
// request, POST /upgrade/VERB of TiDB's HTTP API since v7.1.2 and v7.4.0.
type Verb string

// Notifications of TiDB.
const (
	Start  Verb = "start"
	Finish Verb = "finish"
)

// Order is a notification of TiDB. One server that takes it is enough, all
// servers of the PDGroup learn of it.
type Order struct {
	// Group that the order is given for.
	Group types.NamespacedName
	// Verb of the order.
	Verb Verb
	// About tells orders of the same verb apart.
	About string
	// Hosts of servers that serve, tried in this order.
	Hosts []string
	// TLS is how these are connected to, by host; none without TLS.
	TLS map[string]*tls.Config
}

// Answer is what became of a group's last order.
type Answer struct {
	Order
	// Done says that the order has ended, At when and Err how.
	Done bool
	At   time.Time
	Err  error
}

// IsFor reports whether it is the answer to an order of this verb and subject.
func (a Answer) IsFor(verb Verb, about string) bool { return a.Verb == verb && a.About == about }

// Tell gives an order to one server. That TiDB knows already is no error.
type Tell func(ctx context.Context, host string, verb Verb) error

// Orders gives orders beside the reconciles, none of which waits for an answer:
// the group is woken up when there is one. What a killed operator forgets is told
// again, which TiDB does not mind.
type Orders struct {
	tell Tell
	now  func() time.Time

	queue   *question.Queue
	mu      sync.Mutex
	answers map[types.NamespacedName]Answer
	owed    map[types.NamespacedName]*Order // none that is nil
}

// NewOrders returns an empty memory that gives orders by tell.
func NewOrders(tell Tell, now func() time.Time) *Orders {
	return &Orders{tell: tell, now: now, queue: question.NewQueue(ordersAtOnce), answers: map[types.NamespacedName]Answer{}, owed: map[types.NamespacedName]*Order{}}
}

// Answers reports which groups have an answer.
func (o *Orders) Answers() <-chan event.GenericEvent { return o.queue.Answers() }

// Last returns what became of a group's last order, the zero Answer without one.
func (o *Orders) Last(group types.NamespacedName) Answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.answers[group]
}

// Give gives an order until ctx ends, unless one of the group is still under way.
func (o *Orders) Give(ctx context.Context, order Order) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last, given := o.answers[order.Group]; given && !last.Done {
		return
	}
	o.answers[order.Group] = Answer{Order: order}
	go o.queue.Run(ctx, order.Group, func(ctx context.Context) bool {
		o.deliver(ctx, order)
		return true
	})
}

// Owe notes the order that is to be given if a group is deleted now; nil for none.
func (o *Orders) Owe(group types.NamespacedName, order *Order) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.owed, group)
	if order != nil {
		o.owed[group] = order
	}
}

// Forget forgets the orders of a group, and returns the one that is owed; nil for none.
func (o *Orders) Forget(group types.NamespacedName) *Order {
	o.mu.Lock()
	defer o.mu.Unlock()
	owed := o.owed[group]
	delete(o.answers, group)
	delete(o.owed, group)
	return owed
}

func (o *Orders) deliver(ctx context.Context, order Order) {
	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	err := o.sendToAny(ctx, order)
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, given := o.answers[order.Group]; given { // its group may be gone by now
		o.answers[order.Group] = Answer{Order: order, Done: true, At: o.now(), Err: err}
	}
}

// sendToAny tells the first server that takes it, and returns what the first one that
// did not has said.
func (o *Orders) sendToAny(ctx context.Context, order Order) error {
	var first error
	for at, host := range order.Hosts {
		err := o.sendToOne(httpclient.WithTLS(ctx, order.TLS[host]), host, order.Verb, at == len(order.Hosts)-1)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// sendToOne tells one server. The last one may take all the time that is left.
func (o *Orders) sendToOne(ctx context.Context, host string, verb Verb, last bool) error {
	if last {
		return o.tell(ctx, host, verb)
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	return o.tell(ctx, host, verb)
}

// PostUpgrade tells a server over its status port. TiDB answers 200 to what it is told a
// second time as well, in other words.
func PostUpgrade(ctx context.Context, host string, verb Verb) error {
	return postRequest(ctx, host, "/upgrade/"+string(verb), "", "")
}
