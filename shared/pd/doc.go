// Package pd says what PD knows, and which few orders the operators give it.
//
// In goes what PD answered last, a View; out comes what it means, such as who is unhealthy. Client
// is one PD, which package pdclient reaches and package polling asks again and again. Nothing
// here reads or changes the world.
//
// What PD answers is easily misread: see the comments at View and Store.
package pd
