// Package jobtemplate renders the Jobs that carry out a Backup, a Restore or a LogBackup.
//
// In go the object, the files that it writes or reads, the TiDBGroup and the operator's image;
// out comes a Job: the tool's image and the program that runs it, what of the spec becomes
// its flags, and the volumes with keys, certificates and passwords. When a Job is made, and
// what its end means, is decided in job.
//
// files.go says where files lie, maker.go what Jobs have in common, render.go what each has
// of its own. It is pure.
package jobtemplate
