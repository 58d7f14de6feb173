/** Words of a question that say nothing about its subject. */
const EMPTY_WORDS = new Set(
  'a about am an and any are at be become by can did do does for from get has have how i if in is it its may me much my need of on one or our set should so some something that the their there this to us use want was we what when where which who why will with work working you your'.split(
    ' ',
  ),
);

/** Other words for the same: a reader types one, and the texts may use the other. */
const SAME: readonly (readonly string[])[] = [
  ['spend', 'spent', 'cost', 'charge', 'bill', 'invoice', 'statement'],
  [
    'month',
    'monthly',
    'january',
    'february',
    'march',
    'april',
    'june',
    'july',
    'august',
    'september',
    'october',
    'november',
    'december',
  ],
  ['picture', 'image', 'photo', 'drawing', 'draw', 'paint', 'art'],
  ['vision', 'picture', 'image'],
  ['gdpr', 'privacy', 'stored', 'delete', 'forget', 'erase', 'pii'],
  ['login', 'sign'],
  ['only', 'restrict', 'limit'],
  ['sso', 'oidc', 'single', 'people', 'saml', 'okta', 'azure', 'entra', 'ad', 'keycloak'],
  ['docker', 'container', 'compose'],
  ['k8s', 'kubernetes', 'helm', 'chart'],
  ['balancing', 'balance', 'providers', 'proxy'],
  ['caching', 'cache', 'stay'],
  ['schema', 'json', 'structured'],
  ['refund', 'credit', 'debit', 'correct', 'back'],
  ['block', 'ban', 'freeze', 'refuse'],
  ['rotate', 'replace', 'renew'],
  ['leaked', 'stolen', 'lost', 'compromised'],
  ['raise', 'increase'],
  ['customer', 'account', 'user'],
  ['receipt', 'proof'],
  ['remove', 'delete'],
  ['withdraw', 'payout', 'earning', 'cash', 'out'],
  ['quota', 'limit'],
  ['movie', 'video', 'clip', 'film', 'animation'],
  ['speech', 'voice', 'tts', 'speak', 'talk'],
  ['transcription', 'transcribe', 'transcript', 'stt', 'dictation', 'whisper', 'subtitle'],
  ['audio', 'sound', 'speech'],
  ['embedding', 'vector', 'semantic'],
  ['rerank', 'sort'],
  ['llm', 'chat', 'text', 'gpt'],
  ['chatgpt', 'openai'],
  ['url', 'address', 'endpoint'],
  ['think', 'reason'],
  ['document', 'file', 'pdf', 'upload'],
  ['mcp', 'tool', 'function', 'plugin'],
  ['a2a', 'agent', 'assistant', 'bot'],
  ['key', 'token', 'credential', 'secret'],
  ['pay', 'buy', 'top', 'topup', 'deposit', 'fund'],
  ['error', 'failure', 'fail', 'problem', 'broken'],
  ['estimate', 'quote', 'price'],
  ['stop', 'cancel', 'abort', 'end'],
  ['setting', 'option', 'configuration', 'config'],
  ['install', 'setup', 'deploy', 'start'],
  ['migrate', 'migration', 'move', 'switch'],
  ['week', 'weekly'],
  ['invite', 'add', 'member'],
  ['colleague', 'member', 'team', 'employee', 'people'],
  ['sell', 'provide', 'provider', 'offer', 'seller'],
  ['insufficient', '402', 'more', 'low'],
  ['python', 'javascript', 'typescript', 'sdk'],
  ['audit', 'prove', 'books'],
  ['make', 'generate', 'create'],
  ['rollback', 'downgrade', 'roll'],
  ['down', 'away', 'unavailable'],
  ['autoscaling', 'scaling', 'scale', 'replica', 'several'],
  ['give', 'refund'],
  ['human', 'approve', 'approval', 'confirmation', 'person'],
  ['liveness', 'readiness', 'probe', 'health', 'healthy'],
  ['commission', 'fee', 'markup'],
  ['restrict', 'allow', 'limit'],
  ['check', 'reconcile', 'compare'],
  ['log', 'level'],
  ['slow', 'hang', 'timeout', 'stuck'],
  ['downtime', 'restart', 'rolling'],
  ['ssl', 'tls', 'https'],
  ['refused', '403', '429', 'rejected'],
  ['malicious', 'stranger', 'untrusted', 'rogue'],
  ['usage', 'spend'],
  ['used', 'call', 'spend'],
  ['certificate', 'tls'],
  ['sandbox', 'demo', 'simulation'],
  ['encrypt', 'stored'],
  ['earn', 'claim', 'report'],
];

const VOWEL = /[aeiouy]/;
const DOUBLE = /([bdfgmnprt])\1$/;

/** A word without its ending, so that `pictures`, `priced` and `pricing` are found by `picture` and `price`. */
export function stem(word: string): string {
  let root = word;
  if (root.length > 4 && root.endsWith('ies')) root = `${root.slice(0, -3)}y`;
  else if (root.length > 3 && root.endsWith('s') && !/(?:ss|us|is)$/.test(root)) root = root.slice(0, -1);
  for (const end of ['ing', 'ed', 'ion'])
    if (root.length > end.length + 3 && root.endsWith(end) && VOWEL.test(root.slice(0, -end.length))) {
      root = root.slice(0, -end.length).replace(DOUBLE, '$1');
      break;
    }
  return root.length > 4 && root.endsWith('e') ? root.slice(0, -1) : root;
}

const OTHERS: ReadonlyMap<string, readonly string[]> = (() => {
  const others = new Map<string, Set<string>>();
  for (const group of SAME) {
    const stems = group.map(stem);
    for (const one of stems) others.set(one, new Set([...(others.get(one) ?? []), ...stems]));
  }
  return new Map([...others].map(([one, all]) => [one, [...all].filter((other) => other !== one)]));
})();

const LETTER_FROM = 6;

/** The words of the list above by what they are without one of their letters. */
const WITH_A_LETTER: ReadonlyMap<string, string> = new Map(
  [...OTHERS.keys()]
    .filter((word) => word.length >= LETTER_FROM)
    .flatMap((word) => Array.from(word, (_, at) => [word.slice(0, at) + word.slice(at + 1), word] as const)),
);

/** The stems of words with the same meaning, also of a word in which one letter is missing. */
export const synonymsOf = (root: string): readonly string[] =>
  OTHERS.get(root) ?? OTHERS.get(WITH_A_LETTER.get(root) ?? '') ?? [];

/** The end of `team's`. */
const POSSESSIVE = /['’]s(?!\p{L})/gu;

/** The words of a text in lower case. */
export const wordsOf = (text: string): readonly string[] =>
  text
    .replaceAll(POSSESSIVE, '')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');

const CAPITAL_INSIDE = /(?<=[a-z\d])(?=[A-Z][a-z])/;

/** Names such as `model_not_found`. */
const SNAKE = /[\p{L}\p{N}]+(?:_[\p{L}\p{N}]+)+/gu;

/**
 * The words under which a text is found. `createApiKey` is also its three parts, and `PostgreSQL` and `model_not_found`
 * are also one word.
 */
export const termsOf = (text: string): readonly string[] =>
  [...text.replaceAll(POSSESSIVE, '').split(/[^\p{L}\p{N}]+/u), ...(text.match(SNAKE) ?? [])]
    .filter((word) => word !== '')
    .flatMap((word) => (CAPITAL_INSIDE.test(word) ? [word, ...word.split(CAPITAL_INSIDE)] : [word]))
    .map((word) => word.toLowerCase());

/** The words of a question. Words without a subject are left out if others remain. */
export function wordsOfQuestion(question: string): readonly string[] {
  const all = [...wordsOf(question), ...(question.toLowerCase().match(SNAKE) ?? [])];
  const subjects = all.filter((word) => !EMPTY_WORDS.has(word));
  return subjects.length > 0 ? subjects : all;
}
