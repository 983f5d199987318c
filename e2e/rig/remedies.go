package rig

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/remedy"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// trialTime bounds one trial of a command.
const trialTime = 30 * time.Second

// Kubectl is what kubectl has shown it takes, of all rigs that share it: another command
// that reads or edits another object in the same way only needs that object to be there.
type Kubectl struct {
	schemas func() (schemas, error) // read when a field is looked for first

	mu    sync.Mutex
	takes map[string]bool // by the shape of the command
}

// NewKubectl returns one that nothing is known of yet.
func NewKubectl() *Kubectl {
	return &Kubectl{schemas: sync.OnceValues(loadSchemas), takes: map[string]bool{}}
}

// acceptsCommand reports whether kubectl takes a command.
func (k *Kubectl) acceptsCommand(c remedy.Command) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.takes[c.Shape()]
}

// learn notes that kubectl takes a command that describes or gets objects, or a log, or
// opens the editor: what it would change it asks the API server about each time.
func (k *Kubectl) learn(c remedy.Command) {
	if _, names := c.Targets(); c.Effect() != remedy.Reads && c.Effect() != remedy.Edits || len(names) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.takes[c.Shape()] = true
}

// remedies tries the commands that statuses print, each kind of message once. A command
// is right if it can be run while the message stands and is about what a user may
// change: see [remedies.judge].
type remedies struct {
	watcher *Watcher
	shell   shell
	kubectl *Kubectl
	one     sync.Mutex // held while kubectl runs

	// Under the watcher's lock: the messages that were seen, by the shapes of their
	// commands, and whether a command of a shape was found to be right, false while
	// nothing is known yet.
	messages map[string][]string
	tried    map[string]bool
}

// trial is a command that is to be tried.
type trial struct {
	key     Key
	shape   string
	message string
	command remedy.Command
}

// tryRemedies has a watcher try what statuses print.
func (w *Watcher) tryRemedies(s shell, k *Kubectl) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remedies = &remedies{watcher: w, shell: s, kubectl: k, messages: map[string][]string{}, tried: map[string]bool{}}
}

// Tried returns the messages of statuses whose commands were all found to be right.
func (w *Watcher) Tried() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.remedies == nil {
		return nil
	}
	var out []string
	for message, shapes := range w.remedies.messages {
		if !slices.ContainsFunc(shapes, func(shape string) bool { return !w.remedies.tried[shape] }) {
			out = append(out, message)
		}
	}
	slices.Sort(out)
	return out
}

// commandMessages returns the messages of an object's status that hold a command.
func commandMessages(object *unstructured.Unstructured) []string {
	var out []string
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case string:
			if strings.Contains(v, "kubectl ") {
				out = append(out, v)
			}
		case map[string]any:
			for _, one := range v {
				walk(one)
			}
		case []any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(object.Object["status"])
	return out
}

// take returns what is to be tried of a version of an object. The watcher is locked.
func (r *remedies) take(event watch.EventType, object *unstructured.Unstructured) []trial {
	if event == watch.Deleted || object.GroupVersionKind().Group != v1alpha1.GroupName {
		return nil
	}
	var out []trial
	key := Key{Kind: object.GetKind(), Name: object.GetName()}
	for _, message := range commandMessages(object) {
		_, known := r.messages[message]
		for _, command := range remedy.Commands(message) {
			shape := key.Kind + ": " + shapeOf(message, command)
			if !known {
				r.messages[message] = append(r.messages[message], shape)
			}
			if _, begun := r.tried[shape]; !begun {
				r.tried[shape] = false
				out = append(out, trial{key, shape, message, command})
			}
		}
	}
	return out
}

// prose is what does not differ from object to object.
var prose = regexp.MustCompile(`(?:^| )[a-zA-Z']{2,}`)

// shapeWords is how many words before a command tell one message from another.
const shapeWords = 12

// shapeOf is what messages about different objects have in common.
func shapeOf(message string, c remedy.Command) string {
	before, _, _ := strings.Cut(message, c.Line)
	all := prose.FindAllString(before, -1)
	return strings.Join(all[max(0, len(all)-shapeWords):], "") + " | " + c.Shape()
}

// try tries a command while its message stands. A message may be about to follow what
// has just changed: one is wrong if it is so still after the time in which everything
// has to be said.
func (r *remedies) try(ctx context.Context, t trial) {
	wrong := r.judge(ctx, t.key, t.message, t.command)
	if wrong != nil && r.keepsCommand(ctx, t.key, t.command) {
		wrong = r.judge(ctx, t.key, t.message, t.command)
	}
	if wrong != nil && r.tellsCommand(t.key, t.command) && ctx.Err() == nil {
		r.watcher.violate("%s tells to run %q, which is wrong: %v; the message: %s", t.key, t.command.Line, wrong, t.message)
		return
	}
	r.watcher.mu.Lock()
	defer r.watcher.mu.Unlock()
	if wrong == nil {
		r.tried[t.shape] = true
	} else {
		delete(r.tried, t.shape) // nothing is known of it
	}
}

// tellsCommand reports whether a status still tells a command.
func (r *remedies) tellsCommand(key Key, command remedy.Command) bool {
	r.watcher.mu.Lock()
	defer r.watcher.mu.Unlock()
	object := r.watcher.objects[key]
	return object != nil && slices.ContainsFunc(commandMessages(object), func(message string) bool {
		return slices.ContainsFunc(remedy.Commands(message), func(c remedy.Command) bool { return c.Line == command.Line })
	})
}

// keepsCommand waits for as long as an operator may take to take its word back, and reports
// whether it has not.
func (r *remedies) keepsCommand(ctx context.Context, key Key, command remedy.Command) bool {
	ctx, cancel := context.WithTimeout(ctx, r.watcher.reasonDeadline)
	defer cancel()
	for {
		r.watcher.mu.Lock()
		changed := r.watcher.changed
		r.watcher.mu.Unlock()
		if !r.tellsCommand(key, command) {
			return false
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx) == context.DeadlineExceeded //nolint:errorlint // it is that of this context
		}
	}
}

// judge says what is wrong with a command: it cannot be run as it is, a field that the
// message names does not exist, or it changes what is changed back.
func (r *remedies) judge(ctx context.Context, key Key, message string, command remedy.Command) error {
	if !r.kubectl.acceptsCommand(command) || !r.hasTargets(ctx, command) {
		if err := r.run(ctx, command); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	resource, targets := command.Targets()
	kind := remedy.Kind(resource)
	if resource != "" && kind == "" && command.Verb() != "explain" {
		return fmt.Errorf("package remedy does not know the resource %q", resource)
	}
	for _, name := range targets {
		if err := r.mayChange(ctx, command, Key{Kind: kind, Name: name}); err != nil {
			return err
		}
	}
	return r.fieldExists(key, message, command)
}

// run has kubectl try a command, one at a time: it costs more than what it looks at.
func (r *remedies) run(ctx context.Context, command remedy.Command) error {
	r.one.Lock()
	defer r.one.Unlock()
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	if err := r.shell.try(ctx, command); err != nil {
		return err
	}
	r.kubectl.learn(command)
	return nil
}

// hasTargets reports whether the objects of a command are there, and the container.
func (r *remedies) hasTargets(ctx context.Context, command remedy.Command) bool {
	resource, targets := command.Targets()
	kind := remedy.Kind(resource)
	at := slices.Index(command.Words, "-n")
	if at < 0 && kind != kindNode || at >= 0 && command.Words[at+1] != r.watcher.namespace {
		return false
	}
	for _, name := range targets {
		object := r.find(ctx, Key{Kind: kind, Name: name})
		if object == nil {
			return false
		}
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "containers")
		has := func(one any) bool {
			c, _ := one.(map[string]any)
			return slices.Contains(command.Words, fmt.Sprint(c["name"]))
		}
		if slices.Contains(command.Words, "-c") && !slices.ContainsFunc(containers, has) {
			return false // or an init container
		}
	}
	return true
}

// kindNode is that of the objects without a namespace that messages name.
const kindNode = "Node"

// find returns an object that a command names, nil if there is none, or if kubectl has to say why not.
func (r *remedies) find(ctx context.Context, key Key) *unstructured.Unstructured {
	resource, unwatched := map[string]schema.GroupVersionResource{
		kindNode:                 corev1.SchemeGroupVersion.WithResource("nodes"),
		"Secret":                 corev1.SchemeGroupVersion.WithResource("secrets"),
		v1alpha1.KindCertificate: {Group: "cert-manager.io", Version: "v1", Resource: "certificates"},
	}[key.Kind]
	if !unwatched {
		return r.watcher.get(ctx, key)
	}
	namespace := r.watcher.namespace
	if key.Kind == kindNode {
		namespace = ""
	}
	object, err := r.watcher.client.Resource(resource).Namespace(namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return object
}

// mayChange says why a user should not do to an object what a command does.
func (r *remedies) mayChange(ctx context.Context, command remedy.Command, target Key) error {
	if target.Kind == kindNode && command.Verb() == "delete" {
		return r.mayDeleteNode(ctx, target.Name)
	}
	if effect := command.Effect(); effect != remedy.Changes && effect != remedy.Edits {
		return nil
	}
	object := r.watcher.get(ctx, target)
	if object == nil {
		return nil // kubectl has seen it a moment ago, or says so itself
	}
	owner := metav1.GetControllerOf(object)
	if owner == nil || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupName+"/") {
		return nil
	}
	switch command.Verb() {
	case "annotate":
		return nil // which is not taken off again
	case "delete":
		if target.Kind == v1alpha1.KindInstance || target.Kind == v1alpha1.KindPDGroup {
			return nil // it is recreated
		}
	case "edit", "patch", "scale":
		if owner.Kind == v1alpha1.KindTidbCluster && !namesEntry(r.watcher.get(ctx, Key{Kind: owner.Kind, Name: owner.Name}), object) {
			return nil
		}
	}
	return fmt.Errorf("%s belongs to %s %s, which sets it back", target, owner.Kind, owner.Name)
}

// mayDeleteNode: only a node that does not answer is deleted.
func (r *remedies) mayDeleteNode(ctx context.Context, name string) error {
	object, err := r.watcher.client.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // done meanwhile
	}
	node := &corev1.Node{}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, node)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read node %s: %w", name, err)
	case isNodeReady(node):
		return fmt.Errorf("node %s is Ready", name)
	}
	return nil
}

// namesEntry reports whether a TidbCluster has an entry for a group.
func namesEntry(cluster, group *unstructured.Unstructured) bool {
	if cluster == nil {
		return false
	}
	component := group.GetLabels()[v1alpha1.LabelComponent]
	if component == v1alpha1.ComponentPD {
		return true
	}
	entries, _, _ := unstructured.NestedSlice(cluster.Object, "spec", component)
	return slices.ContainsFunc(entries, func(one any) bool {
		entry, _ := one.(map[string]any)
		name, _ := entry["name"].(string)
		return names.Group(cluster.GetName(), component, name) == group.GetName()
	})
}

// fieldExists: a command that edits is told with the field, the last one before it, which
// the object has.
func (r *remedies) fieldExists(key Key, message string, command remedy.Command) error {
	resource, targets := command.Targets()
	kind := remedy.Kind(resource)
	if command.Effect() != remedy.Edits || !slices.Contains(v1alpha1.Kinds(), kind) {
		return nil
	}
	before, _, _ := strings.Cut(message, command.Line)
	named := remedy.FindFields(before)
	if len(named) == 0 {
		return errors.New("no field is named that is to be edited")
	}
	field := named[len(named)-1]
	all, err := r.kubectl.schemas()
	if err != nil {
		return err
	}
	if !all.has(kind, field.Steps) {
		return fmt.Errorf("a %s has no field %s, which %s names", kind, field.Path, key)
	}
	r.watcher.mu.Lock()
	defer r.watcher.mu.Unlock()
	for _, name := range targets {
		if object := r.watcher.objects[Key{Kind: kind, Name: name}]; object != nil && !hasEntry(object.Object, field.Steps) {
			return fmt.Errorf("%s %s has no entry of the name in %s", kind, name, field.Path)
		}
	}
	return nil
}

// hasEntry reports whether an object has the entry that a path goes on from.
func hasEntry(object map[string]any, steps []string) bool {
	for at, step := range steps {
		if at+1 < len(steps)-1 && strings.HasPrefix(steps[at+1], "[") {
			list, _ := object[step].([]any)
			return remedy.FindEntry(list, steps[at+1]) != nil
		}
		below, ok := object[step].(map[string]any)
		if !ok {
			return true // nothing is set there yet
		}
		object = below
	}
	return true
}
