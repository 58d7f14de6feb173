/** Words of a question that say nothing about its subject. */
const EMPTY_WORDS = new Set(
  'a about am an and any are at be by can do does for from get has have how i if in is it its me my need of on or our should so some something that the their there this to us use want was we what when where which who why will with you your'.split(
    ' ',
  ),
);

/** Other words for the same: a reader types one, and the texts may use the other. */
const SAME: readonly (readonly string[])[] = [
  ['spend', 'spent', 'cost', 'charge', 'bill', 'invoice', 'statement'],
  ['monthly', 'month'],
  ['picture', 'image', 'photo', 'drawing', 'draw', 'paint', 'art'],
  ['vision', 'picture', 'image', 'see'],
  ['gdpr', 'privacy', 'stored', 'delete'],
  ['login', 'sign', 'sso'],
  ['docker', 'container', 'compose'],
  ['k8s', 'kubernetes', 'helm', 'chart'],
  ['balancing', 'balance', 'providers', 'proxy'],
  ['caching', 'cache', 'stay'],
  ['schema', 'json', 'structured'],
  ['refund', 'credit', 'debit', 'correct'],
  ['block', 'ban', 'freeze', 'refuse'],
  ['rotate', 'replace', 'renew'],
  ['raise', 'increase'],
  ['customer', 'account', 'user'],
  ['receipt', 'proof'],
  ['remove', 'delete'],
  ['payout', 'withdraw', 'earning'],
  ['quota', 'limit'],
  ['movie', 'video', 'clip', 'film', 'animation'],
  ['speech', 'voice', 'tts', 'speak', 'talk'],
  ['transcription', 'transcribe', 'transcript', 'stt', 'dictation', 'whisper', 'subtitle'],
  ['audio', 'sound', 'speech'],
  ['embedding', 'vector', 'semantic'],
  ['rerank', 'sort'],
  ['llm', 'chat', 'text', 'gpt'],
  ['think', 'reason'],
  ['document', 'file', 'pdf', 'upload'],
  ['mcp', 'tool', 'function', 'plugin'],
  ['a2a', 'agent', 'assistant', 'bot'],
  ['key', 'token', 'credential', 'secret'],
  ['buy', 'pay', 'topup', 'deposit'],
  ['error', 'failure', 'fail', 'problem', 'broken'],
  ['estimate', 'quote', 'price'],
  ['stop', 'cancel', 'abort', 'end'],
  ['setting', 'option', 'configuration', 'config'],
  ['install', 'setup', 'deploy', 'start'],
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

/** The stems of words with the same meaning. */
export const synonymsOf = (root: string): readonly string[] => OTHERS.get(root) ?? [];

/** The parts of a text in lower case: `createApiKey`, `create-api-key` and `create api key` have the same three. */
export const wordsOf = (text: string): readonly string[] =>
  text
    .replaceAll(/(?<=[a-z\d])(?=[A-Z])/g, ' ')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');

/** The words of a question. Words without a subject are left out if others remain. */
export function wordsOfQuestion(question: string): readonly string[] {
  const all = wordsOf(question);
  const subjects = all.filter((word) => !EMPTY_WORDS.has(word));
  return subjects.length > 0 ? subjects : all;
}
