import { join } from 'node:path';
import { expect, test } from 'vitest';
import { addressOfPage, readGuide } from '../../src/console/pages/guide/guide-pages.ts';
import { searchIndex } from '../../src/console/pages/guide/search-index.ts';
import { ROOT } from '../architecture/source.ts';

// Questions as people type them, each with the page that has to be among the first three results. Pages of one question
// are named by their path in the guide.

const QUESTIONS: Readonly<Record<string, string>> = {
  'how much did I spend': 'use/spend',
  'monthly cost': 'use/spend',
  'export spend': 'use/spend',
  invoice: 'use/spend',
  'spend by team': 'use/spend',
  'bill looks wrong': 'use/bill-looks-wrong',
  'refund a customer': 'run/refunds',
  refund: 'run/refunds',
  'give money back': 'run/refunds',
  'block a customer': 'run/block',
  'block a provider': 'run/block',
  'ban a user': 'run/block',
  'api keys': 'use/keys',
  'create api key': 'use/keys',
  'revoke key': 'use/keys',
  'rotate api key': 'use/keys',
  'stolen key': 'use/keys',
  'structured output': 'use/structured-output',
  'json schema': 'use/structured-output',
  'function calling': 'use/function-tools',
  'function tools': 'use/function-tools',
  vision: 'use/pictures-in-chat',
  'image in chat': 'use/pictures-in-chat',
  gdpr: 'use/privacy',
  'delete my data': 'use/privacy',
  'what is stored': 'use/privacy',
  privacy: 'use/privacy',
  login: 'use/sign-in',
  'sign in': 'use/sign-in',
  oauth: 'use/programs-sign-in',
  cors: 'run/web-pages',
  docker: 'deploy',
  kubernetes: 'deploy',
  helm: 'deploy',
  systemd: 'deploy',
  'add openai': 'providers-in-one-line',
  'rate limit': 'administration',
  'raise a rate limit': 'administration',
  '429 too many requests': 'reference/errors',
  webhook: 'administration',
  'rotate admin key': 'administration',
  budget: 'use/budgets',
  members: 'use/organisations',
  backup: 'backups',
  restore: 'backups',
  upgrade: 'upgrades',
  'claude code': 'clients/claude-code',
  codex: 'clients/codex',
  embeddings: 'use/embeddings',
  batch: 'batches',
  realtime: 'realtime',
  transcription: 'use/transcription',
  'generate images': 'image-calls',
  video: 'video-calls',
  rerank: 'use/rerank',
  mcp: 'use/tools',
  a2a: 'use/agents',
  receipt: 'use/receipts',
  quote: 'use/quotes',
  'own key at provider': 'use/own-keys',
  metrics: 'operations',
  'withdraw money': 'use/withdraw',
  idempotency: 'use/repeats',
  'send a request again': 'use/repeats',
  fallback: 'use/fallbacks',
  retries: 'use/fallbacks',
  'load balancing': 'use/choose-providers',
  'prompt caching': 'use/prompt-caching',
  streaming: 'use/streams',
  'max cost of a call': 'use/caps',
  'list models': 'use/models',
  'reasoning effort': 'use/thinking',
  'count tokens': 'use/count-tokens',
  'chat completions': 'use/chat',
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
