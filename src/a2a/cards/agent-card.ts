/** A card in the form of A2A 1.0 (section 4.4). Unknown members are absent, never empty. */
export interface AgentCard {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly supportedInterfaces: readonly AgentInterface[];
  readonly provider?: { readonly organization: string; readonly url: string };
  readonly documentationUrl?: string;
  readonly iconUrl?: string;
  readonly capabilities: AgentCapabilities;
  readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  readonly securityRequirements: readonly SecurityRequirement[];
  readonly defaultInputModes: readonly string[];
  readonly defaultOutputModes: readonly string[];
  readonly skills: readonly AgentSkill[];
}

export interface AgentInterface {
  readonly url: string;
  readonly protocolBinding: 'JSONRPC' | 'HTTP+JSON';
  readonly protocolVersion: string;
}

interface AgentCapabilities {
  readonly streaming: boolean;
  readonly pushNotifications: boolean;
  readonly extendedAgentCard?: true;
  readonly extensions?: readonly AgentExtension[];
}

export interface AgentExtension {
  readonly uri: string;
  readonly description?: string;
  /**
   * Absent if a client need not support the extension. Some verifiers leave out an explicit false and others do not, so
   * false is never written.
   */
  readonly required?: true;
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface AgentSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly examples?: readonly string[];
  readonly inputModes?: readonly string[];
  readonly outputModes?: readonly string[];
}

export type SecurityScheme =
  | { readonly httpAuthSecurityScheme: { readonly description: string; readonly scheme: string } }
  | {
      readonly apiKeySecurityScheme: {
        readonly description: string;
        readonly location: 'header';
        readonly name: string;
      };
    }
  | { readonly openIdConnectSecurityScheme: { readonly description: string; readonly openIdConnectUrl: string } };

interface SecurityRequirement {
  readonly schemes: Readonly<Record<string, { readonly list: readonly string[] }>>;
}
