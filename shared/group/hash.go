package group

import (
	"encoding/json"
	"fmt"

	"github.com/tidb-groups/tidb-groups/shared/apply"
)

// hash digests encoded inputs; empty maps and lists do not count.
func hash(raw []byte) (string, error) {
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return "", fmt.Errorf("decode the spec: %w", err)
	}
	return apply.Hash(tree)
}

// ConfigMapName names the ConfigMap of a group's files: by their content, so
// that it never changes under a running pod.
func ConfigMapName(group string, files map[string]string) (string, error) {
	sum, err := apply.Hash(files)
	if err != nil {
		return "", err
	}
	return group + "-config-" + sum, nil
}
