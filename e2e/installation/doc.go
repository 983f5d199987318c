// Package installation runs the operators as an overlay installs them: it is rendered
// and applied by kubectl, and each operator runs with the arguments of its Deployment
// and with the token of its ServiceAccount, so that it may do what its roles and the
// policies let it do, and nothing else. The world around them is the rig's.
//
// It has an API server of its own: policies would judge the operators of all rigs.
package installation
