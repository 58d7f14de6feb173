// Parts that definitions and results have in common, as the official SDKs check them.

import { boolean, byMember, expected, list, members, number, object, oneOf, type Shape, text } from './shape.ts';

export const role = oneOf('user', 'assistant');

/** The pattern of the SDKs: RFC 3339 with seconds and an offset, and only days that exist. */
const DATE_TIME =
  /^(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8])))T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

const dateTime = expected('a time of RFC 3339', (value) => typeof value === 'string' && DATE_TIME.test(value));

const share = expected('a number from 0 to 1', (value) => typeof value === 'number' && value >= 0 && value <= 1);

export const annotations = members({}, { audience: list(role), priority: share, lastModified: dateTime });

/** Base64 as `atob` takes it, which is what clients read it with. */
const base64 = expected('standard Base64', (value) => {
  if (typeof value !== 'string') return false;
  try {
    atob(value);
    return true;
  } catch {
    return false;
  }
});

const icon = members({ src: text }, { mimeType: text, sizes: list(text), theme: oneOf('light', 'dark') });

export const titled = { title: text, icons: list(icon) };

export const described = { ...titled, description: text, mimeType: text, annotations, _meta: object };

const contents = { uri: text };
const ofContents = { mimeType: text, _meta: object };
const textContents = members({ ...contents, text }, ofContents);
const blobContents = members({ ...contents, blob: base64 }, ofContents);

/** The contents of a resource: a text, or else a blob. */
export const resourceContents: Shape = (value, at) =>
  (typeof (value as { readonly text?: unknown } | null)?.text === 'string' ? textContents : blobContents)(value, at);

const marked = { annotations, _meta: object };
const binary = members({ data: base64, mimeType: text }, marked);

export const contentBlock = byMember('type', {
  text: members({ text }, marked),
  image: binary,
  audio: binary,
  resource_link: members({ name: text, uri: text }, { ...described, size: number }),
  resource: members({ resource: resourceContents }, marked),
});

export const implementation = members(
  { name: text, version: text },
  { ...titled, websiteUrl: text, description: text },
);

const flags = (...names: readonly string[]): Shape =>
  members({}, Object.fromEntries(names.map((name) => [name, boolean])));

export const serverCapabilities = members(
  {},
  {
    experimental: object,
    logging: object,
    completions: object,
    prompts: flags('listChanged'),
    resources: flags('subscribe', 'listChanged'),
    tools: flags('listChanged'),
    extensions: object,
  },
);
