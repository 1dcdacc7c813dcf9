"""An audit's report in the forms that people and their tools read: text, JUnit, SARIF, HTML, tables, GitHub."""
