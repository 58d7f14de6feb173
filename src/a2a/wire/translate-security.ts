import { isObject, type JsonObject } from '#wire';
import { drop, each, editMembers, onObject, type Edit } from './edit-members.ts';

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

/** Translates `securitySchemes`, a map by name, from 0.3 to 1.0. */
export const schemesTo10: Edit = onObject((schemes) => mapValues(schemes, schemeTo10));

/** Translates `securitySchemes` from 1.0 to 0.3. */
export const schemesTo03: Edit = onObject((schemes) => mapValues(schemes, schemeTo03));

/** Translates `security` from 0.3 to 1.0: `[{name: scopes}]` → `[{schemes: {name: {list: scopes}}}]`. */
export const requirementsTo10: Edit = each(
  onObject((requirement) => ({ schemes: mapValues(requirement, (scopes) => ({ list: scopes })) })),
);

/** Translates `securityRequirements` from 1.0 to 0.3. ProtoJSON leaves out an empty list of scopes. */
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
