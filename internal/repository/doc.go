// Package repository has no code but tests of the repository itself: which packages a package may
// import, the exported names, comments and pages, the modules and their releases. They need no race
// detector and no server.
package repository
