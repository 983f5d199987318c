package pdsim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/model/pdapi"
)

// Options set a simulated PD up.
type Options struct {
	// Members are the names of the first members; nil means pd-0, pd-1, pd-2.
	Members []string
	// Unstarted are those of the first members that have never run: listed by
	// name, and without client URLs until SetHealthy starts them.
	Unstarted []string
	// ClientURL gives the advertised client URL of a member; nil means the
	// address of its listener.
	ClientURL func(name string) string
	// PeerURL gives the advertised peer URL; nil means a made-up one.
	PeerURL func(name string) string
	// Services are host:port names that Transport takes to any live member.
	Services []string
	// ClusterID is the id that is born; 0 derives one from the members' names.
	ClusterID uint64
	// Election is how long the members take to find another leader, by the
	// clock of Cluster; 0 means 3 s, negative means none.
	Election time.Duration
	// Ping is how long a member waits for one that is off the network when it is asked which
	// are healthy; 0 means 3 s.
	Ping time.Duration
	// Transfer is how long a submitted transfer takes; 0 means 500 ms, negative none.
	Transfer time.Duration
	// Load is how long a member that starts takes to load the regions, by the clock of
	// Cluster; 0 means none.
	Load time.Duration
	// Build is what the members say they are; the zero value means pdapi.DefaultBuild.
	Build pdapi.Build
	// Cluster sets the stores' half up. Its Save is taken by the simulation.
	Cluster model.Options
}

// PD is a simulated PD. Its methods are safe for concurrent use.
type PD struct {
	mu        sync.Mutex
	opts      Options
	clock     model.Clock
	id        uint64
	nodes     []*node
	leader    *node // nil while there is none
	lostAt    time.Time
	pending   *node
	pendingAt time.Time
	cluster   *model.Cluster
	disk      disk
	alarms    []model.Alarm
	past      []model.Alarm // of clusters of former leaders
}

// disk is what the members keep together: the state of the leader in office. It
// has a lock of its own, since it is written with the cluster's lock held.
type disk struct {
	mu    sync.Mutex
	data  []byte
	terms int
}

// office opens a new term and returns the options for its cluster, whose writes
// are refused once the next term has begun.
func (d *disk) office(opts model.Options) model.Options {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.terms++
	term := d.terms
	opts.Save = func(data []byte) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.terms != term {
			return errors.New("not leader")
		}
		d.data = slices.Clone(data)
		return nil
	}
	return opts
}

func (d *disk) load() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.data)
}

// node is one member, or what is left of one.
type node struct {
	pd          *PD
	name        string
	id          uint64
	priority    int
	alive       bool
	unreachable bool // its node is off the network
	removed     bool
	// old is how many members it knew, itself included, when another one was started
	// with --force-new-cluster and forgot it; 0 if none was.
	old     int
	haunts  bool // it runs although it was forgotten
	upSince time.Time
	known   *node  // the leader that it last knew
	addr    string // on loopback; empty with Options.ClientURL
	peerURL string // of one that was never started
	// peers are the URLs that it was given later; empty if none were.
	peers []string
	// unpublished initial members have never run.
	unpublished bool
	port        *port // nil while it does not run
	started     time.Time
}

// New starts the members, elects the first of them, and returns.
func New(opts Options) (*PD, error) {
	if opts.Members == nil {
		opts.Members = []string{"pd-0", "pd-1", "pd-2"}
	}
	if opts.Election == 0 {
		opts.Election = 3 * time.Second
	}
	if opts.Ping == 0 {
		opts.Ping = 3 * time.Second
	}
	if opts.Transfer == 0 {
		opts.Transfer = 500 * time.Millisecond
	}
	if opts.Build == (pdapi.Build{}) {
		opts.Build = pdapi.DefaultBuild()
	}
	if opts.Cluster.Clock == nil {
		opts.Cluster.Clock = model.SystemClock{}
	}
	p := &PD{opts: opts, clock: opts.Cluster.Clock, id: opts.ClusterID}
	if p.id == 0 {
		p.id = hashText(fmt.Sprint(opts.Members)) | 1
	}
	c, err := model.NewCluster(p.disk.office(opts.Cluster))
	if err != nil {
		return nil, err
	}
	if p.disk.data, err = c.Encode(); err != nil {
		return nil, err
	}
	p.cluster = c
	for _, name := range opts.Members {
		if err := p.start(name); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var closing error
	for _, n := range p.nodes {
		if slices.Contains(opts.Unstarted, n.name) {
			n.alive, n.unpublished, n.known = false, true, nil
			closing = errors.Join(closing, n.port.close())
			n.port = nil
		}
	}
	p.setLeader(p.candidate())
	return p, closing
}

// Close stops all members.
func (p *PD) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, n := range p.nodes {
		if n.port != nil {
			errs = append(errs, n.port.close())
		}
	}
	return errors.Join(errs...)
}

// Cluster is what the leader knows: stores, regions, schedulers. It is nil
// while there is no leader.
func (p *PD) Cluster() *model.Cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	if p.leader == nil {
		return nil
	}
	return p.cluster
}

// StartStore is what a store's process does when it starts: it registers, as the
// first of all if need be, and sends heartbeats by itself from then on, over
// changes of the leader too.
func (p *PD) StartStore(meta model.StoreMeta) error {
	c := p.Cluster()
	if c == nil {
		return errors.New("start store: PD has no leader")
	}
	var err error
	if c.IsBootstrapped() {
		err = c.PutStore(meta)
	} else {
		err = p.bootstrapStore(c, meta)
	}
	if err != nil {
		return fmt.Errorf("start store %d: %w", meta.ID, err)
	}
	c.SetStoreAlive(meta.ID, true)
	return nil
}

func (p *PD) bootstrapStore(c *model.Cluster, meta model.StoreMeta) error {
	region, err := c.AllocID()
	if err != nil {
		return err
	}
	peer, err := c.AllocID()
	if err != nil {
		return err
	}
	return c.Bootstrap(meta, region, peer)
}

// StopStore ends a store's process; its data stays.
func (p *PD) StopStore(id uint64) {
	if c := p.Cluster(); c != nil {
		c.SetStoreAlive(id, false)
	}
}

// ClusterID is the id of the cluster.
func (p *PD) ClusterID() uint64 { return p.id }

// Leader is the name of the leader, empty while there is none.
func (p *PD) Leader() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	if p.leader == nil {
		return ""
	}
	return p.leader.name
}

// URL is where a member is reached on loopback, without Options.ClientURL: the latest
// one of the name, which may have been removed and still run.
func (p *PD) URL(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range slices.Backward(p.nodes) {
		if n.name == name {
			return "http://" + n.addr
		}
	}
	return ""
}

// URLs are the client URLs of all members, in the order in which they joined.
func (p *PD) URLs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, n := range p.nodes {
		if !n.removed {
			out = append(out, n.clientURL())
		}
	}
	return out
}

// SetHealthy kills a member's process or starts it again with its data. It
// raises an alarm when a majority is lost.
func (p *PD) SetHealthy(name string, healthy bool) error {
	p.mu.Lock()
	n := p.node(name)
	if n == nil {
		defer p.mu.Unlock()
		return p.haunt(name, healthy)
	}
	if n.alive == healthy {
		p.mu.Unlock()
		return nil
	}
	n.alive, n.unreachable = healthy, false
	n.unpublished = n.unpublished && !healthy
	n.upSince = p.clock.Now()
	port := n.port
	n.port = nil
	p.settle()
	p.checkMajority()
	p.mu.Unlock()
	if !healthy && port == nil {
		return nil
	}
	if !healthy {
		if err := port.close(); err != nil {
			return fmt.Errorf("stop PD member %s: %w", name, err)
		}
		return nil
	}
	return n.listen()
}

// Disconnect takes a member off the network: it neither answers nor refuses to, until SetHealthy
// starts it again.
func (p *PD) Disconnect(name string) error {
	if err := p.SetHealthy(name, false); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.node(name); n != nil {
		n.unreachable = true
	}
	return nil
}

// ForceNewCluster starts a member with its data and --force-new-cluster: it forgets
// all others, and keeps the cluster's ID and its own. Others that run, or that run
// again with their data as a majority of those that they know, are a second
// cluster beside it, which is an alarm.
func (p *PD) ForceNewCluster(name string) error {
	p.mu.Lock()
	n := p.node(name)
	if n == nil {
		p.mu.Unlock()
		return fmt.Errorf("no PD member %s", name)
	}
	known := p.voters()
	for _, o := range known {
		if o == n {
			continue
		}
		o.removed, o.old = true, len(known)
		if o.alive {
			p.raise(model.TwoClusters, name, "started with --force-new-cluster while "+o.name+" runs")
		}
	}
	p.mu.Unlock()
	return p.SetHealthy(name, true)
}

// haunt starts or stops a member that was forgotten. It has its data and waits for
// those that it knows.
func (p *PD) haunt(name string, runs bool) error {
	at := slices.IndexFunc(p.nodes, func(n *node) bool { return n.name == name && n.old > 0 })
	if at < 0 {
		return fmt.Errorf("no PD member %s", name)
	}
	p.nodes[at].haunts = runs
	running := 0
	for _, n := range p.nodes {
		if n.haunts {
			running++
		}
	}
	if runs && running >= p.nodes[at].old/2+1 {
		p.raise(model.TwoClusters, name, "members that were forgotten have a majority of those that they know")
	}
	return nil
}

// Join adds a member and starts it, as pd-server does with --join. A member of
// that name that is still listed must be removed first, and etcd refuses one more
// until all members have been up for 5 s.
func (p *PD) Join(name string) error {
	p.mu.Lock()
	p.settle()
	switch {
	case p.leader == nil:
		p.mu.Unlock()
		return errors.New("join PD: no leader")
	case p.node(name) != nil:
		p.mu.Unlock()
		return fmt.Errorf("join PD: missing data or join a duplicated pd: %s", name)
	case !p.areMembersConnected():
		p.mu.Unlock()
		return fmt.Errorf("join PD: %w", ErrUnhealthy)
	}
	p.mu.Unlock()
	return p.start(name)
}

// AddUnstarted adds a member to the list that has not started: it has no name
// and counts for the majority.
func (p *PD) AddUnstarted(peerURL string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes = append(p.nodes, &node{
		pd: p, id: hashText(fmt.Sprintf("%s/%d", peerURL, len(p.nodes))), peerURL: peerURL, upSince: p.clock.Now(),
	})
	p.settle()
	p.checkMajority()
}

// Bootstrap is what a member does that starts with --initial-cluster and
// without data. While there is a cluster already, a second id is born, which is
// an alarm; the member is not added.
func (p *PD) Bootstrap(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.raise(model.SecondClusterID, name, fmt.Sprintf("started a new cluster beside %d", p.id))
}

// Alarms are all alarms so far, of the members and of the stores.
func (p *PD) Alarms() []model.Alarm {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := append(slices.Clone(p.alarms), p.past...)
	return append(out, p.cluster.Alarms()...)
}

func (p *PD) start(name string) error {
	p.mu.Lock()
	now := p.clock.Now()
	n := &node{pd: p, name: name, id: hashText(fmt.Sprintf("%s/%d", name, len(p.nodes))), alive: true, upSince: now, started: now, known: p.leader}
	p.nodes = append(p.nodes, n)
	p.mu.Unlock()
	return n.listen()
}

// listen lets a member answer: within the process, and on loopback where nothing else is
// advertised.
func (n *node) listen() error {
	n.pd.mu.Lock()
	defer n.pd.mu.Unlock()
	var listeners []net.Listener
	if n.pd.opts.ClientURL == nil {
		l, err := listenLoopback(n.addr)
		if err != nil {
			return fmt.Errorf("listen for PD member %s: %w", n.name, err)
		}
		listeners, n.addr = append(listeners, l), l.Addr().String()
	}
	n.port = openPort(n.handler(), listeners...)
	return nil
}

// settle elects a leader where one is due, and carries out transfers.
func (p *PD) settle() {
	now := p.clock.Now()
	if p.leader != nil && (!p.leader.alive || p.leader.removed || !p.hasQuorum()) {
		p.leader, p.lostAt = nil, now
		p.pending = nil
	}
	if p.leader == nil {
		if !p.hasQuorum() || now.Before(p.lostAt.Add(p.opts.Election)) {
			return
		}
		p.setLeader(p.candidate())
		return
	}
	if p.pending != nil && !now.Before(p.pendingAt.Add(p.opts.Transfer)) {
		to := p.pending
		p.pending = nil
		if to.alive && !to.removed && to != p.leader {
			p.setLeader(to)
		}
	}
	// Members give way to one of higher priority.
	if best := p.candidate(); best.priority > p.leader.priority {
		p.setLeader(best)
	}
	// One that was away learns who leads now.
	for _, n := range p.nodes {
		if n.alive && !n.removed {
			n.known = p.leader
		}
	}
}

func (p *PD) candidate() *node {
	var best *node
	for _, n := range p.nodes {
		if n.alive && !n.removed && (best == nil || n.priority > best.priority) {
			best = n
		}
	}
	return best
}

// setLeader makes n lead. A new leader loads what the last one saved.
func (p *PD) setLeader(n *node) {
	if p.leader == n {
		return
	}
	if n.known != nil || p.leader != nil {
		// Where the regions are is physically true, whether or not a member has written it down.
		if err := p.cluster.Tick(); err != nil {
			p.raise(model.LostData, "pd", err.Error())
			return
		}
		c, err := model.LoadCluster(p.disk.load(), p.disk.office(p.opts.Cluster))
		if err != nil {
			// What was saved was encoded by the same package.
			p.raise(model.LostData, "pd", err.Error())
			return
		}
		p.past = append(p.past, p.cluster.Alarms()...)
		c.Inherit(p.cluster)
		p.cluster = c
	}
	p.leader = n
	for _, o := range p.nodes {
		if o.alive && !o.removed {
			o.known = n
		}
	}
}

// Handler answers as a member that runs; nil if it does not.
func (p *PD) Handler(name string) http.Handler {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.node(name)
	if n == nil || n.port == nil {
		return nil
	}
	return n.port.server.Handler
}

func (p *PD) voters() []*node {
	return slices.DeleteFunc(slices.Clone(p.nodes), func(n *node) bool { return n.removed })
}

func (p *PD) hasQuorum() bool {
	alive, total := 0, 0
	for _, n := range p.voters() {
		total++
		if n.alive {
			alive++
		}
	}
	return total > 0 && alive >= total/2+1
}

func (p *PD) checkMajority() {
	if !p.hasQuorum() {
		p.raise(model.LostPDMajority, "pd", "fewer than a majority of the PD members are alive")
	}
}

// checkLoaded raises an alarm if a member is told to lead that could not tell where a region is,
// while a third one could.
func (p *PD) checkLoaded(to *node) {
	if !p.cluster.IsBootstrapped() || to.isLoaded() {
		return
	}
	for _, n := range p.voters() {
		if n != to && n != p.leader && n.isLoaded() {
			p.raise(model.NotLoaded, to.name, "it is told to lead without the regions, which "+n.name+" has")
			return
		}
	}
}

func (p *PD) raise(kind model.AlarmKind, subject, message string) {
	a := model.Alarm{At: p.clock.Now(), Kind: kind, Subject: subject, Message: message}
	p.alarms = append(p.alarms, a)
	if p.opts.Cluster.OnAlarm != nil {
		p.opts.Cluster.OnAlarm(a)
	}
}

// node finds a member that is still listed.
func (p *PD) node(name string) *node {
	for _, n := range p.nodes {
		if n.name == name && !n.removed {
			return n
		}
	}
	return nil
}

func hashText(s string) uint64 {
	h := fnv.New64a()
	// A hash never fails to be written to.
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}
