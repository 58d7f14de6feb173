import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Spine } from '../../../support/spine.ts';
import { createPerson } from '../../../gateway/authorization/support/person.ts';
import { registerRaw, type RawClient } from '../../../gateway/authorization/support/raw-client.ts';

/** A command that prints an access token of the gateway, and refreshes it when it has expired. */
export interface KeyHelper {
  readonly file: string;
  readonly args: readonly string[];
  readonly client: RawClient;
  /** What it prints. */
  token(): Promise<string>;
  refreshToken(): string;
  /** Refresh tokens that it has used, oldest first. */
  used(): readonly string[];
  /** Says by how many milliseconds the clock of the gateway is ahead. */
  setAhead(ms: number): void;
}

const BUDGET = {
  limit: 50,
  limit_reset: 'monthly',
  expires_at: new Date(Date.now() + 30 * 24 * 60 * 60_000).toISOString(),
};

const PROGRAM = `
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
const [origin, client, folder] = process.argv.slice(2);
const path = (name) => folder + '/' + name;
const kept = JSON.parse(readFileSync(path('tokens.json'), 'utf8'));
const now = Date.now() + Number(readFileSync(path('ahead'), 'utf8'));
let token = kept.access_token;
if (kept.until <= now) {
  const form = { grant_type: 'refresh_token', client_id: client, refresh_token: kept.refresh_token };
  const answer = await fetch(origin + '/oauth/token', { method: 'POST', body: new URLSearchParams(form) });
  const body = await answer.json();
  if (answer.status !== 200) throw new Error(JSON.stringify(body));
  appendFileSync(path('used'), kept.refresh_token + '\\n');
  const next = path('tokens-' + process.pid);
  writeFileSync(next, JSON.stringify({ ...body, until: now + body.expires_in * 1000 }));
  renameSync(next, path('tokens.json'));
  token = body.access_token;
}
process.stdout.write(token);
`;

/** Signs in by the gateway's own page, and leaves the helper with its tokens in `folder`. */
export async function signInWithHelper(spine: Spine, folder: string, ahead: () => number): Promise<KeyHelper> {
  const client = await registerRaw(spine.origin, { resource: `${spine.origin}/api/v1` });
  const { expires_in: seconds, ...tokens } = await client.signIn(createPerson(spine.origin, spine.key), {
    limits: BUDGET,
  });
  const at = (name: string) => join(folder, name);
  const until = Date.now() + ahead() + seconds * 1_000;
  await writeFile(at('tokens.json'), JSON.stringify({ ...tokens, until }));
  await writeFile(at('ahead'), String(ahead()));
  await writeFile(at('used'), '');
  await writeFile(at('helper.mjs'), PROGRAM);
  const args = [at('helper.mjs'), spine.origin, client.id, folder];
  return {
    file: process.execPath,
    args,
    client,
    token: async () => (await promisify(execFile)(process.execPath, args)).stdout,
    refreshToken: () =>
      (JSON.parse(readFileSync(at('tokens.json'), 'utf8')) as { refresh_token: string }).refresh_token,
    used: () => readFileSync(at('used'), 'utf8').split('\n').filter(Boolean),
    setAhead: (ms) => writeFileSync(at('ahead'), String(ms)),
  };
}
