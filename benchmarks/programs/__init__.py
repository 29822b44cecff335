"""Programs of the guard in a file, solved by this version, by 0.4.0, and by HiGHS."""
