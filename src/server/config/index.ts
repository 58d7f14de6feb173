export { bearerKey, readUrl } from './blocks/block.ts';
export { BLOCKS, BLOCK_TABLES, readBlocks, readOffers } from './blocks.ts';
export { DECLARABLE } from './blocks/declared.ts';
export { imageKindName, imageKinds, imageVariant } from './blocks/image-block.ts';
export { SEARCHES_MAX, servesRealtime } from './blocks/model-block.ts';
export { readProviders } from './blocks/provider-block.ts';
export { isDefaultTier } from './blocks/price-tiers.ts';
export {
  type ClusterConfig,
  type Config,
  type LimitsConfig,
  type Mode,
  type SignInConfig,
  type TunnelConfig,
  freeze,
} from './config.ts';
export type { KeyPlace } from './chains.ts';
export type { ChainConfig, ChainPaymentsConfig } from './chains.ts';
export { checksummed, keccak, parseEvmAddress } from './evm-address.ts';
export { type ExplainedOption, explainConfig, literalSecrets, loadConfig } from './file.ts';
export { imageTokensMax } from './image-tokens.ts';
export { isKey, keypairFileOption, privateKeyOption } from './key-options.ts';
export {
  ALIAS_PREFIX,
  PRIMITIVES,
  type Primitive,
  SORT_SUFFIXES,
  TUNNEL_PATH,
  domainFault,
  foldName,
  serviceNameFault,
} from './names.ts';
export { type NamedDifferences, configDifferences, secretsOf } from './option-values.ts';
export { option } from './option.ts';
export { PACKAGES } from './options/limits.ts';
export type { AdmittedProviders } from './options/network.ts';
export { otlpHeaderPairs } from './options/telemetry.ts';
export { ConfigError, type ConfigProblem, WrongValue, nearest, show } from './problem.ts';
export { type Environment, type ConfigReading, complain, isTable, readTable, unknownKey, valuesOf } from './reading.ts';
export type { Table } from './toml.ts';
export { type CapField, type CapName } from './refused-cap.ts';
export {
  type AgentFacts,
  type CommandTarget,
  type HttpTarget,
  type SdkTarget,
  type MediaFacts,
  type ModelFacts,
  type ServiceTarget,
  type Service,
  type ServiceConfig,
  contextDeclared,
} from './service.ts';
export { PACKAGE_FAILED, findPackage } from './blocks/sdk-package.ts';
export { indexLines, parseToml, readTomlFile } from './toml.ts';
export { NATIVE_APIS, type NativeWireName } from './native-apis.ts';
export {
  IMAGE_PATHS,
  VIDEO_API,
  isAnswerPath,
  keyHeaders,
  ownPathsOf,
  pathOfHeaders,
  upstreamPath,
} from './upstream-api.ts';
