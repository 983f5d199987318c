package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/shared/revision"
)

// Kinds that are named after what they hold, which has the namespace in it.
const (
	kindConfigMap = "ConfigMap"
	kindRevision  = "ControllerRevision"
)

// content replaces, in the text of an object, the namespace, the UIDs of all
// objects and every name that comes from hashing a text with these in it, so
// that the same objects in two namespaces are the same text.
type content struct {
	namespace string
	names     []string // old and new, by turns
}

// readContent looks at everything that is named after what it holds.
func readContent(o objects.Set, namespace string) (content, error) {
	c := content{namespace: namespace}
	for _, key := range o.Keys() {
		c.names = append(c.names, string(o.Get(key.Kind, key.Name).GetUID()), "UID of "+key.String())
	}
	for _, key := range o.Keys() {
		if key.Kind != kindConfigMap {
			continue
		}
		object := o.Get(key.Kind, key.Name)
		data, err := c.text(object.Object["data"])
		if err != nil {
			return content{}, fmt.Errorf("read %s: %w", key, err)
		}
		c.rename(hashSuffix(key.Name), data)
	}
	for _, key := range o.Keys() {
		if key.Kind != kindRevision {
			continue
		}
		if err := c.revision(o.Get(key.Kind, key.Name)); err != nil {
			return content{}, fmt.Errorf("read %s: %w", key, err)
		}
	}
	return c, nil
}

// revision takes a ControllerRevision in: its own name, and the hash that
// Instances and pods of it carry.
func (c *content) revision(object *unstructured.Unstructured) error {
	data, found := object.Object["data"]
	if !found {
		return nil
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var record revision.Record
	if err := json.Unmarshal(raw, &record); err != nil {
		return err
	}
	hash, err := record.Hash()
	if err != nil {
		return err
	}
	record.Inputs = ""
	rendering, err := c.text(record)
	if err != nil {
		return err
	}
	all, err := c.text(data)
	if err != nil {
		return err
	}
	c.rename(hash, rendering)
	c.rename(hashSuffix(object.GetName()), all)
	return nil
}

// rename has a hash replaced by one of the replaced text.
func (c *content) rename(hash, text string) {
	if hash == "" {
		return
	}
	sum := sha256.Sum256([]byte(text))
	c.names = append(c.names, hash, "~"+hex.EncodeToString(sum[:4]))
}

// text encodes a value and replaces what is known so far.
func (c *content) text(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return strings.NewReplacer(append(c.names, c.namespace, "NAMESPACE")...).Replace(string(text)), nil
}

// hashSuffix is what stands behind the last dash of a name, if that is a hash.
func hashSuffix(name string) string {
	last := name[strings.LastIndex(name, "-")+1:]
	if _, err := hex.DecodeString(last); err != nil || len(last) < 8 {
		return ""
	}
	return last
}
