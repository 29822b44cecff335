"""The decision process: a public belief moves, a policy chooses, a bound holds."""
