"""The demo's problem and people, and what is played with them: `still`, where the hidden pair stays what it is."""
