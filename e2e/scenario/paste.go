package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/remedy"
)

// Paste is a user who pastes a command that a status prints into a shell. The step
// waits until the status does, takes the command as it is, and runs it; what comes of it
// is for the steps after it to await.
type Paste struct {
	// Object whose status has the command.
	Object objects.Key `json:"object"`
	// Condition whose message has it.
	Condition string `json:"condition,omitempty"`
	// Path of the message, as of a [Field], where it is not one of a condition.
	Path string `json:"path,omitempty"`
	// Event is the reason of an Event about the object that has it as its note, where no
	// status has it.
	Event string `json:"event,omitempty"`
	// Command is how it goes on after kubectl and the namespace, as in "scale tikvgroup":
	// the message must have one such command, and may have others.
	Command string `json:"command"`
	// Edit is what the person does in the editor that the command opens.
	Edit []Edit `json:"edit,omitempty"`
	// File is what stands in the file that the command wants for its placeholder FILE.
	File string `json:"file,omitempty"`
}

// Edit is a change of a field that the message names.
type Edit struct {
	// Field as the message has it, with the name of an entry: spec.tikv[main].replicas.
	Field string `json:"field"`
	// Value that it gets; it is taken away if there is none.
	Value any `json:"value,omitempty"`
}

// editing writes the edited object over the file that kubectl has opened the editor on.
// It leaves the version there: the object's status may have been written since it was read.
const editing = `version=$(grep -m 1 '^  resourceVersion:' "$1")
sed "s/^  resourceVersion:.*/$version/" %s > "$1.new" && mv "$1.new" "$1"
`

// paste does what a status says.
func (r *runner) paste(ctx context.Context, p Paste) error {
	ctx, cancel := context.WithTimeout(ctx, r.scenario.within(0))
	defer cancel()
	message, command, err := r.read(ctx, p)
	if err != nil {
		return err
	}
	if err := r.foresee(ctx, command); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tidb-groups-paste-")
	if err != nil {
		return fmt.Errorf("make folder for the editor: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // nothing depends on it
	line, editor, err := r.prepare(ctx, p, message, command, dir)
	if err != nil {
		return fmt.Errorf("paste %s: %w", command.Line, err)
	}
	if err := r.world.Paste(ctx, line, editor); err != nil {
		return fmt.Errorf("paste %s, of %q: %w", command.Line, message, err)
	}
	r.pasted = append(r.pasted, message)
	return nil
}

// read waits for the message and its command.
func (r *runner) read(ctx context.Context, p Paste) (message string, command remedy.Command, err error) {
	if p.Event == "" {
		err = r.world.Await(ctx, func(o objects.Set) (err error) {
			message = p.message(o)
			command, err = p.find(message)
			return err
		})
		return message, command, err
	}
	err = pollDatabase(ctx, func(ctx context.Context) error { // who waits for objects is not told of Events
		var list eventsv1.EventList
		if err := r.world.User().List(ctx, &list, client.InNamespace(r.world.Namespace())); err != nil {
			return fmt.Errorf("list Events: %w", err)
		}
		for _, e := range list.Items {
			if e.Reason == p.Event && e.Regarding.Kind == p.Object.Kind && e.Regarding.Name == p.Object.Name {
				message = e.Note
			}
		}
		command, err = p.find(message)
		return err
	})
	return message, command, err
}

// message of the object, empty if there is none.
func (p Paste) message(o objects.Set) string {
	object := o.Get(p.Object.Kind, p.Object.Name)
	if object == nil {
		return ""
	}
	if p.Path != "" {
		message, _ := findValue(object.Object, strings.Split(p.Path, ".")).(string)
		return message
	}
	if c := objects.Condition(object, p.Condition); objects.IsCurrent(object, c) {
		return c.Message
	}
	return ""
}

// find returns the command of the message.
func (p Paste) find(message string) (remedy.Command, error) {
	var found []remedy.Command
	for _, c := range remedy.Commands(message) {
		if strings.HasPrefix(c.Rest(), p.Command) {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		return remedy.Command{}, fmt.Errorf("%s says %d times to %s: %q", p.Object, len(found), p.Command, message)
	}
	return found[0], nil
}

// foresee notes what the command deletes, as the steps that delete do.
func (r *runner) foresee(ctx context.Context, c remedy.Command) error {
	resource, names := c.Targets()
	kind := remedy.Kind(resource)
	if c.Verb() != "delete" {
		return nil
	}
	for _, name := range names {
		if kind == kindClaim {
			r.consent([]string{name})
			continue
		}
		object, err := r.reference(objects.Key{Kind: kind, Name: name})
		if err != nil {
			return err
		}
		if err := r.world.User().Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return fmt.Errorf("read what is to be deleted: %w", err)
		}
		r.deleted[objects.Key{Kind: kind, Name: name}] = object.GetUID()
	}
	return nil
}

// prepare returns the line with its placeholder filled, and the editor.
func (r *runner) prepare(ctx context.Context, p Paste, message string, c remedy.Command, dir string) (line, editor string, err error) {
	line, path := c.Line, filepath.Join(dir, "file")
	switch {
	case c.Placeholder() == "FILE":
		line = strings.Replace(line, "FILE", path, 1)
		err = os.WriteFile(path, []byte(p.File), 0o600)
	case c.Placeholder() != "":
		err = fmt.Errorf("%s is to be filled in", c.Placeholder())
	case c.Effect() == remedy.Edits:
		var text []byte
		if text, err = r.edited(ctx, p, message, c); err == nil {
			script := filepath.Join(dir, "editor")
			err = errors.Join(os.WriteFile(path, text, 0o600), os.WriteFile(script, fmt.Appendf(nil, editing, path), 0o600))
			editor = "sh " + script
		}
	case len(p.Edit) > 0:
		err = errors.New("it opens no editor")
	}
	return line, editor, err
}

// edited returns the object that a command opens an editor on, as the person leaves it.
func (r *runner) edited(ctx context.Context, p Paste, message string, c remedy.Command) ([]byte, error) {
	resource, names := c.Targets()
	if len(names) != 1 || len(p.Edit) == 0 {
		return nil, fmt.Errorf("one object is edited, and the step says how; it names %v", names)
	}
	object, err := r.reference(objects.Key{Kind: remedy.Kind(resource), Name: names[0]})
	if err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	if err := r.world.User().Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return nil, fmt.Errorf("read what is to be edited: %w", err)
	}
	live.SetManagedFields(nil)
	for _, e := range p.Edit {
		// Only of our kinds are fields named by paths.
		named := remedy.FindFields(message)
		if !slices.ContainsFunc(named, func(f remedy.Field) bool { return e.Field == f.Path || strings.HasPrefix(e.Field, f.Path+".") }) && groupOf(live.GetKind()) != "" {
			return nil, fmt.Errorf("the message names %v, not %s: %s", named, e.Field, message)
		}
		value, err := toJSONValue(e.Value)
		if err != nil {
			return nil, err
		}
		if !remedy.TrySet(live.Object, remedy.SplitPath(e.Field), value) {
			return nil, fmt.Errorf("%s %s has no %s", live.GetKind(), live.GetName(), e.Field)
		}
	}
	text, err := yaml.Marshal(live.Object)
	if err != nil {
		return nil, fmt.Errorf("write what is edited: %w", err)
	}
	return text, nil
}

// toJSONValue returns a value as JSON has it.
func toJSONValue(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write value: %w", err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	return out, nil
}
