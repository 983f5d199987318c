// Package timetable reads when something is to happen again and again.
//
// In go five fields of cron and a time zone; out comes a schedule that tells the next time, or
// what is wrong with the text. It is pure.
package timetable
