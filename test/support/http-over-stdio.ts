import { createInterface } from 'node:readline';

/*
 * An MCP server on stdin and stdout that knows nothing itself: each line goes to the server at the address in argv, and
 * what that answers is the line that it writes.
 */
const url = process.argv[2]!;
for await (const body of createInterface({ input: process.stdin })) {
  const response = await fetch(url, { method: 'POST', body });
  const text = await response.text();
  if (text !== '') process.stdout.write(`${text}\n`);
}
