import type { Case } from './option-case.ts';

/** Cases of the options of `[oauth]` and `[authorization]`. */
export const OAUTH_CASES = {
  'oauth.issuer': {
    toml: '"https://idp.example/realms/main"',
    wrong: '"http://idp.example"',
    of: (c) => c.oauth.issuer,
    is: 'https://idp.example/realms/main',
    fallback: null,
  },
  'oauth.audience': {
    toml: '"api://tollgate"',
    wrong: '"two words"',
    of: (c) => c.oauth.audience,
    is: 'api://tollgate',
    fallback: null,
  },
  'oauth.shared_audience': {
    toml: 'true',
    wrong: '"yes"',
    of: (c) => c.oauth.sharedAudience,
    is: true,
    fallback: false,
  },
  'oauth.scopes': {
    toml: '["mcp", "mcp:call"]',
    wrong: '["two words"]',
    of: (c) => c.oauth.scopes.join(),
    is: 'mcp,mcp:call',
    fallback: '',
  },
  'oauth.required_scope': {
    toml: '"mcp:call"',
    wrong: "'a\"b'",
    of: (c) => c.oauth.requiredScope,
    is: 'mcp:call',
    fallback: null,
  },
  'oauth.jwks_url': {
    toml: '"http://127.0.0.1:9/keys?set=1"',
    wrong: '"ftp://idp.example/keys"',
    of: (c) => c.oauth.jwksUrl,
    is: 'http://127.0.0.1:9/keys?set=1',
    fallback: null,
  },
  'authorization.enabled': {
    toml: 'true',
    wrong: '"yes"',
    of: (c) => c.authorization.enabled,
    is: true,
    fallback: false,
  },
  'authorization.client_documents': {
    toml: 'false',
    wrong: '"no"',
    of: (c) => c.authorization.clientDocuments,
    is: false,
    fallback: true,
  },
  'authorization.registration': {
    toml: 'false',
    wrong: '"no"',
    of: (c) => c.authorization.registration,
    is: false,
    fallback: true,
  },
} as const satisfies Record<string, Case>;
