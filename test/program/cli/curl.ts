import { readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

/*
 * As much of curl as the pages use, for machines without it: `-H`, `-d`, `-F`, `-i`, `-X`, `-o`, `-b` and `-c`. `-s`
 * and `-N` do nothing.
 */

const headers: [string, string][] = [];
let body: string | null = null;
let method: string | null = null;
let withHead = false;
let file: string | null = null;
let form: FormData | null = null;
let jar: string | null = null;
let url = '';
for (const words = process.argv.slice(2); words.length > 0;) {
  const word = words.shift()!;
  if (word === '-H') {
    const [name, value] = words.shift()!.split(/: (.*)/s) as [string, string];
    headers.push([name, value]);
  } else if (word === '-d') body = words.shift()!;
  else if (word === '-X') method = words.shift()!;
  else if (word === '-o') file = words.shift()!;
  else if (word === '-b') headers.push(['cookie', readFileSync(words.shift()!, 'utf8')]);
  else if (word === '-c') jar = words.shift()!;
  else if (word === '-F') {
    const [name, value] = words.shift()!.split(/=(.*)/s) as [string, string];
    form ??= new FormData();
    if (value.startsWith('@')) form.append(name, new Blob([readFileSync(value.slice(1))]), basename(value));
    else form.append(name, value);
  } else if (word === '-i') withHead = true;
  else if (!['-s', '-N'].includes(word)) url = word;
}
const sent = form ?? body;
const response = await fetch(url, { method: method ?? (sent === null ? 'GET' : 'POST'), headers, body: sent });
if (jar !== null)
  writeFileSync(
    jar,
    response.headers
      .getSetCookie()
      .map((cookie) => cookie.split(';', 1)[0])
      .join('; '),
  );
if (withHead)
  process.stdout.write(
    `HTTP/1.1 ${response.status}\n${[...response.headers].map(([name, value]) => `${name}: ${value}\n`).join('')}\n`,
  );
const bytes = Buffer.from(await response.arrayBuffer());
if (file === null) process.stdout.write(bytes);
else writeFileSync(file, bytes);
