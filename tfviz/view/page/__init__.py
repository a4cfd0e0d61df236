"""The live half: a view as data, packed, in one self-contained piece of HTML or in a widget."""
