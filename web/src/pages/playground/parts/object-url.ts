import { useEffect, useState } from 'react';

/** The bytes of a base64 text; null for another text. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> | null {
  try {
    const binary = atob(base64);
    const bytes = new Uint8Array(binary.length);
    for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
    return bytes;
  } catch {
    return null;
  }
}

/** An address in this page for bytes, for as long as the component is shown. null until then, and for no base64. */
export function useObjectUrl(base64: string, mediaType: string): string | null {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    const bytes = bytesOf(base64);
    if (bytes === null) return;
    const made = URL.createObjectURL(new Blob([bytes], { type: mediaType }));
    let gone = false;
    queueMicrotask(() => {
      if (!gone) setUrl(made);
    });
    return () => {
      gone = true;
      URL.revokeObjectURL(made);
    };
  }, [base64, mediaType]);
  return url;
}
