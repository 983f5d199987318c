// Package basis finds the Backups that a log goes on from.
//
// In go Backups, or the template of a BackupSchedule, and a LogBackup; out come the Backup to
// restore before the log, the time up to which it may be truncated, and why Backups of a
// template are no basis for it. It is pure.
package basis
