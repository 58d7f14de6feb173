import { isObject, type JsonObject } from '#wire';
import { drop, each, editMembers, isSet, onObject, type Edit } from './edit-json.ts';
import { versionOf } from './protocol.ts';

const skillTo10: Edit = onObject((skill) =>
  editMembers(skill, { security: ['securityRequirements', requirementsTo10] }),
);
const skillTo03: Edit = onObject((skill) =>
  editMembers(skill, { securityRequirements: ['security', requirementsTo03] }),
);

/**
 * Translates an agent card from 0.3 to 1.0. `url`, `preferredTransport` and `protocolVersion` become the first
 * interface, and `additionalInterfaces` the others. Signatures are dropped, because they cover the original form of the
 * card.
 */
export const cardTo10: Edit = onObject((card) => {
  const {
    url,
    preferredTransport,
    protocolVersion,
    additionalInterfaces,
    supportsAuthenticatedExtendedCard,
    supportedInterfaces,
    ...rest
  } = card;
  const first = { url, protocolBinding: preferredTransport ?? 'JSONRPC', protocolVersion: protocolVersion ?? '0.3' };
  const others: unknown[] = Array.isArray(additionalInterfaces) ? additionalInterfaces : [];
  const interfaces =
    Array.isArray(supportedInterfaces) && supportedInterfaces.length > 0
      ? (supportedInterfaces as unknown[])
      : [...(isSet(url) ? [first] : []), ...others.map(interfaceTo10)];
  const extended = isSet(supportsAuthenticatedExtendedCard)
    ? { extendedAgentCard: supportsAuthenticatedExtendedCard }
    : {};
  return {
    ...(isSet(supportsAuthenticatedExtendedCard) ? { capabilities: extended } : {}),
    ...editMembers(rest, {
      capabilities: onObject((one) => ({ ...editMembers(one, { stateTransitionHistory: drop }), ...extended })),
      securitySchemes: schemesTo10,
      security: ['securityRequirements', requirementsTo10],
      skills: each(skillTo10),
      signatures: drop,
    }),
    supportedInterfaces: interfaces,
  };
});

const interfaceTo10: Edit = onObject((one) => ({
  ...editMembers(one, { transport: ['protocolBinding'] }),
  protocolVersion: '0.3',
}));

/**
 * Translates an agent card from 1.0 to 0.3. The first interface of 0.3 becomes `url` and `preferredTransport`, and the
 * other interfaces of 0.3 become `additionalInterfaces`. If the card has no interface of 0.3, all interfaces are kept,
 * because the gateway replaces their addresses when it publishes the card.
 */
export const cardTo03: Edit = onObject((card) => {
  const { supportedInterfaces, ...rest } = card;
  const all = (Array.isArray(supportedInterfaces) ? supportedInterfaces : []).filter(isObject);
  const legacy = all.filter(
    (one) =>
      !isSet(one['protocolVersion']) || one['protocolVersion'] === '' || versionOf(one['protocolVersion']) === '0.3',
  );
  const [first, ...others] = legacy.length > 0 ? legacy : all;
  const { capabilities } = card;
  const extended = isObject(capabilities) ? capabilities['extendedAgentCard'] : undefined;
  return {
    ...(first === undefined ? {} : endpointOf(first, legacy.length > 0)),
    ...editMembers(rest, {
      capabilities: onObject((one) => editMembers(one, { extendedAgentCard: drop })),
      securitySchemes: schemesTo03,
      securityRequirements: ['security', requirementsTo03],
      skills: each(skillTo03),
      signatures: drop,
    }),
    ...(others.length === 0 ? {} : { additionalInterfaces: others.map(interfaceTo03) }),
    ...(isSet(extended) ? { supportsAuthenticatedExtendedCard: extended } : {}),
  };
});

function endpointOf({ url, protocolBinding, protocolVersion }: JsonObject, isLegacy: boolean): JsonObject {
  return {
    protocolVersion: isLegacy && isSet(protocolVersion) && protocolVersion !== '' ? protocolVersion : '0.3.0',
    url,
    preferredTransport: protocolBinding ?? 'JSONRPC',
  };
}

const interfaceTo03: Edit = onObject((one) =>
  editMembers(one, { protocolBinding: ['transport'], protocolVersion: drop, tenant: drop }),
);

/** The `type` of a scheme in 0.3, and the member that holds the scheme in 1.0. */
const SCHEMES = [
  ['apiKey', 'apiKeySecurityScheme'],
  ['http', 'httpAuthSecurityScheme'],
  ['oauth2', 'oauth2SecurityScheme'],
  ['openIdConnect', 'openIdConnectSecurityScheme'],
  ['mutualTLS', 'mtlsSecurityScheme'],
] as const;

/** 1.0 has one flow (a oneof). If 0.3 declares several, the first of this list counts. */
const FLOWS = ['authorizationCode', 'clientCredentials', 'implicit', 'password'] as const;

const oneFlow: Edit = onObject((flows) => {
  const known = FLOWS.filter((name) => isObject(flows[name]));
  return editMembers(flows, Object.fromEntries(known.slice(1).map((name) => [name, drop])));
});

const schemeTo10: Edit = onObject((scheme) => {
  const { type, ...rest } = scheme;
  const member = SCHEMES.find(([name]) => name === type)?.[1];
  if (member === undefined) return scheme;
  return {
    [member]: editMembers(rest, {
      ...(type === 'apiKey' ? { in: ['location'] } : {}),
      ...(type === 'oauth2' ? { flows: oneFlow } : {}),
    }),
  };
});

const schemeTo03: Edit = onObject((scheme) => {
  for (const [type, member] of SCHEMES) {
    const inner = scheme[member];
    if (isObject(inner))
      return { type, ...editMembers(inner, { type: drop, ...(type === 'apiKey' ? { location: ['in'] } : {}) }) };
  }
  return scheme;
});

export const schemesTo10: Edit = onObject((schemes) => mapValues(schemes, schemeTo10));

const schemesTo03: Edit = onObject((schemes) => mapValues(schemes, schemeTo03));

/** Translates `security` from 0.3 to 1.0: `[{name: scopes}]` → `[{schemes: {name: {list: scopes}}}]`. */
export const requirementsTo10: Edit = each(
  onObject((requirement) => ({ schemes: mapValues(requirement, (scopes) => ({ list: scopes })) })),
);

/** Translates `securityRequirements` from 1.0 to 0.3. ProtoJSON leaves out an empty list of scopes. */
const requirementsTo03: Edit = each(
  onObject((requirement) => {
    const { schemes } = requirement;
    return isObject(schemes)
      ? mapValues(schemes, (scopes) => (isObject(scopes) ? (scopes['list'] ?? []) : scopes))
      : requirement;
  }),
);

function mapValues(object: JsonObject, edit: Edit): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, edit(value)]));
}
