import { writeFileSync } from 'node:fs';

/* As much of curl as the pages use, for machines without it: `-H`, `-d`, `-i`, `-X`, `-o`. `-s` and `-N` do nothing. */

const headers: [string, string][] = [];
let body: string | null = null;
let method: string | null = null;
let withHead = false;
let file: string | null = null;
let url = '';
for (const words = process.argv.slice(2); words.length > 0;) {
  const word = words.shift()!;
  if (word === '-H') {
    const [name, value] = words.shift()!.split(/: (.*)/s) as [string, string];
    headers.push([name, value]);
  } else if (word === '-d') body = words.shift()!;
  else if (word === '-X') method = words.shift()!;
  else if (word === '-o') file = words.shift()!;
  else if (word === '-i') withHead = true;
  else if (!['-s', '-N'].includes(word)) url = word;
}
const response = await fetch(url, { method: method ?? (body === null ? 'GET' : 'POST'), headers, body });
if (withHead)
  process.stdout.write(
    `HTTP/1.1 ${response.status}\n${[...response.headers].map(([name, value]) => `${name}: ${value}\n`).join('')}\n`,
  );
const bytes = Buffer.from(await response.arrayBuffer());
if (file === null) process.stdout.write(bytes);
else writeFileSync(file, bytes);
