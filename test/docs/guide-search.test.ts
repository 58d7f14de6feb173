import { join } from 'node:path';
import { expect, test } from 'vitest';
import { addressOfPage, readGuide } from '../../src/console/pages/guide/guide-pages.ts';
import { searchIndex } from '../../src/console/pages/guide/search-index.ts';
import { ROOT } from '../architecture/source.ts';

// Questions as people type them, each with the page that has to be among the first three results. Pages of one question
// are named by their path in the guide.

const QUESTIONS: Readonly<Record<string, string>> = {
  'how much did I spend': 'spending',
  'monthly cost': 'spending',
  'export spend': 'spending',
  invoice: 'spending',
  'spend by team': 'spending',
  'bill looks wrong': 'spending',
  'refund a customer': 'refunds',
  refund: 'refunds',
  'give money back': 'refunds',
  'block a customer': 'block',
  'block a provider': 'block',
  'ban a user': 'block',
  'api keys': 'api-keys',
  'create api key': 'api-keys',
  'revoke key': 'api-keys',
  'rotate api key': 'api-keys',
  'stolen key': 'api-keys',
  'structured output': 'structured-output',
  'json schema': 'structured-output',
  'function calling': 'function-tools',
  'function tools': 'function-tools',
  vision: 'pictures-in-chat',
  'image in chat': 'pictures-in-chat',
  gdpr: 'what-is-stored',
  'delete my data': 'what-is-stored',
  'what is stored': 'what-is-stored',
  privacy: 'what-is-stored',
  login: 'sign-in',
  'sign in': 'sign-in',
  docker: 'deploy',
  kubernetes: 'deploy',
  helm: 'deploy',
  systemd: 'deploy',
  'add openai': 'providers-in-one-line',
  'rate limit': 'administration',
  'raise a rate limit': 'administration',
  '429 too many requests': 'errors',
  webhook: 'administration',
  'rotate admin key': 'administration',
  budget: 'organisations',
  members: 'organisations',
  backup: 'backups',
  restore: 'backups',
  upgrade: 'upgrades',
  'claude code': 'clients/claude-code',
  codex: 'clients/codex',
  embeddings: 'embeddings',
  batch: 'batches',
  realtime: 'realtime',
  transcription: 'audio',
  'generate images': 'image-calls',
  video: 'video-calls',
  rerank: 'rerank',
  mcp: 'mcp',
  a2a: 'a2a',
  receipt: 'billing',
  quote: 'quotes',
  'own key at provider': 'own-keys',
  metrics: 'operations',
  'withdraw money': 'payments',
  idempotency: 'chat',
  fallback: 'chat',
};

const { bestFirst, wordsOf } = (await import(join(ROOT, 'src/console/pages/guide/guide-search.js'))) as {
  readonly wordsOf: (text: string) => readonly string[];
  readonly bestFirst: <Entry>(entries: readonly Entry[], words: readonly string[]) => readonly Entry[];
};

const guide = await readGuide(ROOT);
const index = searchIndex(guide);

test.each(Object.entries(QUESTIONS))('%s finds %s', (question, path) => {
  const page = guide.pages.get(path);
  expect(page, join('docs', `${path}.md`)).toBeDefined();
  const found = bestFirst(index, wordsOf(question))
    .slice(0, 3)
    .map(([address]) => address.split('#')[0]);
  expect(found).toContain(addressOfPage(page!));
});
