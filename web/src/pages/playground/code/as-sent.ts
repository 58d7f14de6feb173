import { BOOT } from '../../../app/boot.ts';
import { curl } from '../../../code/curl.ts';
import { jsonText, type Snippet } from '../../../code/snippet.ts';

/** A request of the playground as a curl command. */
export const asCurl = (path: string, body: unknown, more: readonly string[] = []): Snippet => ({
  id: 'curl',
  name: 'curl',
  code: curl(`${BOOT.base_url}${path}`, body, { more }),
});

/** The request as this page sends it, with the browser's session instead of a key. */
export const asSent = (path: string, body: unknown): Snippet => ({
  id: 'sent',
  name: 'As sent',
  code: `POST ${path}\nContent-Type: application/json\n\n${jsonText(body)}`,
  note: 'This page sends it with your session. Programs send an API key in its place.',
});
