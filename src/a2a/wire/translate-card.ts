import { isObject, type JsonObject } from '#wire';
import { drop, each, editMembers, isSet, onObject, type Edit } from './edit-members.ts';
import { requirementsTo03, requirementsTo10, schemesTo03, schemesTo10 } from './translate-security.ts';
import { versionOf } from './version.ts';

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
