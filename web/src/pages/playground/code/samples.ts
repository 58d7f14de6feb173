import { BOOT } from '../../../app/boot.ts';

/** Code that makes a call, for one client. */
export interface Sample {
  readonly id: string;
  readonly name: string;
  readonly code: string;
  /** Says how the code differs from the request of the playground. */
  readonly note?: string;
}

const TEXT_MAX = 600;

/** JSON for people: what is long, such as a picture, is cut. */
export const jsonText = (value: unknown): string =>
  JSON.stringify(
    value,
    (_key, each: unknown) =>
      typeof each === 'string' && each.length > TEXT_MAX && each.startsWith('data:') ? `${each.slice(0, 40)}…` : each,
    2,
  );

/** A curl command. An apostrophe in the JSON is written so that a shell passes it on. */
export const curl = (path: string, body: unknown, more: readonly string[] = []): string =>
  [
    `curl ${BOOT.base_url}${path}`,
    `  -H "Authorization: Bearer $KEY"`,
    `  -H 'Content-Type: application/json'`,
    ...more,
    `  -d '${jsonText(body).replaceAll("'", String.raw`'\''`)}'`,
  ].join(' \\\n');

export const OPENAI = `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${BOOT.base_url}/api/v1', apiKey: process.env.KEY });
`;

/** The request as this page sends it: with the session of the browser in place of a key. */
export const asSent = (path: string, body: unknown): Sample => ({
  id: 'sent',
  name: 'As sent',
  code: `POST ${path}\nContent-Type: application/json\n\n${jsonText(body)}`,
  note: 'This page sends it with your session. Programs send an API key in its place.',
});
