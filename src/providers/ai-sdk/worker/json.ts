import type { JsonObject } from '#wire';

export const isRecord = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const stringOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

export const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);
