// Package lists completes the lists of all groups that manifests and RBAC markers hold:
// rights, admission policies, network policies, the bindings of a namespace, and the operators
// and CRDs to install. It also says in CRDs what no marker can.
//
// In: a text, and the table of components. Out: the text, in which every list that names
// the groups of PD, TiKV and TiDB names those of all components.
package lists
