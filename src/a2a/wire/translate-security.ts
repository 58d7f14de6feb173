import { isObject, type JsonObject } from '#wire';
import { drop, each, editMembers, onObject, type Edit } from './edit-members.ts';

/** 0.3's `type` of a scheme and 1.0's member that holds it. */
const SCHEMES = [
  ['apiKey', 'apiKeySecurityScheme'],
  ['http', 'httpAuthSecurityScheme'],
  ['oauth2', 'oauth2SecurityScheme'],
  ['openIdConnect', 'openIdConnectSecurityScheme'],
  ['mutualTLS', 'mtlsSecurityScheme'],
] as const;

/** 1.0 has one flow (a oneof); where 0.3 declares several, the first of these. */
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

/** 0.3 → 1.0 of `securitySchemes`, a map by name. */
export const schemesTo10: Edit = onObject((schemes) => mapValues(schemes, schemeTo10));

/** 1.0 → 0.3 of `securitySchemes`. */
export const schemesTo03: Edit = onObject((schemes) => mapValues(schemes, schemeTo03));

/** 0.3 → 1.0 of `security`: `[{name: scopes}]` → `[{schemes: {name: {list: scopes}}}]`. */
export const requirementsTo10: Edit = each(
  onObject((requirement) => ({ schemes: mapValues(requirement, (scopes) => ({ list: scopes })) })),
);

/** 1.0 → 0.3 of `securityRequirements`. ProtoJSON leaves an empty list of scopes out. */
export const requirementsTo03: Edit = each(
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
