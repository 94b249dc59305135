"""One file per agent: snapshot + assessment → proposals. Every agent speaks, none acts."""
