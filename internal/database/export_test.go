package database

// What the tests need to know of the package's inside.
const MigrationLock = migrationLock

var Latest = latest
