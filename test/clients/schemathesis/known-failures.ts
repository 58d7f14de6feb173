/** A finding of schemathesis that stays: `failure` matches `<code> <method> <path> (<title>)`. */
interface KnownFailure {
  readonly failure: RegExp;
  readonly reason: string;
  /** The requests that show it are rare among those that are generated, so it may be missing in a run. */
  readonly rare?: true;
}

/* ST201: a request that is not valid by the schema was accepted. ST202: a valid one was refused. */

export const KNOWN_FAILURES: readonly KnownFailure[] = [
  {
    failure: /^ST202 GET \/api\/v1\/(?:activity|analytics\/(?:own|public)|generations|provider\/earnings) /,
    reason: 'Days: the last 30, at most 366 at once, the first not after the last. A document says no such things.',
  },
  {
    failure: /^ST202 GET \/api\/v1\/(?:batches|files|movements|provider\/calls|videos) /,
    reason: 'The place to go on from is of an earlier answer. schemathesis invents one.',
  },
  {
    failure: /^ST202 GET \/api\/v1\/(?:models(?:\/count|\/user)?|tools) /,
    reason: 'Two parameters of an address exclude or need each other. A document says nothing of two together.',
  },
  {
    failure: /^ST202 DELETE \/api\/v1\/auth\/session /,
    reason: 'Without a cookie only `all=true` says which sessions are meant. A schema does not see the cookie.',
  },
  {
    failure: /^ST202 GET \/mcp(?:\/\{name\})? /,
    reason: 'The id of the session has to be one of a session.',
  },
  {
    failure: /^ST202 POST \/api\/v1\/(?:chat\/completions|completions|embeddings|quotes|responses(?:\/input_tokens)?) /,
    reason: 'The model, the host or the earlier response that a valid request names is not one that can be used.',
  },
  {
    failure: /^ST202 POST \/api\/(?:v1\/(?:audio\/\w+|moderations|realtime\/client_secrets|rerank)|v2\/rerank) /,
    reason: 'The model has to be one that speaks, transcribes, judges or sorts. schemathesis invents its name.',
  },
  {
    failure: /^ST202 POST \/api\/v1\/messages(?:\/count_tokens)? /,
    reason: 'A text may be empty, and blocks of unknown types are left out: nothing is left that could be sent.',
  },
  {
    failure: /^ST202 POST \/api\/v1beta\/models\/\{model\}:(?:batchEmbedContents|generateContent) /,
    reason: 'Hosts that are not public, and requests of one batch that have to agree.',
  },
  {
    failure: /^ST202 POST \/api\/v1\/(?:image\/|images|video\/|videos)/,
    reason: 'Base64 of no picture, hosts that are not public, and numbers of one text that have to be compared.',
  },
  {
    failure: /^ST202 \w+ \/api\/v1\/(?:members|organisations|keys|limits)/,
    reason:
      'A member or a name is there already, a checksum is wrong, a time is over, an amount has too many places, or two budgets are of one period.',
  },
  {
    failure: /^ST202 \w+ \/admin\/v1\//,
    reason: 'The same, and accounts and providers that are not in the state for it.',
  },
  {
    failure: /^ST201 POST \/(?:mcp|a2a)(?:\/\{name\})? /,
    reason: 'Errors of JSON-RPC have status 200, and headers that only calls read are not looked at for others.',
  },
  {
    failure: /^ST201 POST \/api\/v1\/rpc /,
    reason: 'Errors of JSON-RPC have status 200, and a message without an id is a notification, which gets 204.',
  },
  {
    failure: /^ST201 POST \/api\/v1\/(?:chat\/completions|completions|messages|responses) /,
    reason: 'A payment is not read if the request has a key, so a wrong one is no fault.',
  },
  {
    failure: /^ST201 POST \/api\/v1\/responses\/input_tokens /,
    reason: 'A count reads only what it counts.',
    rare: true,
  },
  {
    failure: /^ST201 GET \/api\/v1\/models\/\{name\} /,
    reason: 'Any value of `anthropic-version` asks for that form. It shows where the name is that of a model.',
    rare: true,
  },
];
