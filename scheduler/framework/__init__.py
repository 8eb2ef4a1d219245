"""The extension points, the profile and the pure decision. State in, decision out: nothing here changes the world."""
