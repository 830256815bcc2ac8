"""Reading rows so that none of them decides how another one is read: lines of CSV, and text that is not UTF-8."""
