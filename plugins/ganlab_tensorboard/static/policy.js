// A Content-Security-Policy stricter than that of TensorBoard's page around the tab: nothing but this server, no inline
// code, no styles as text, no frames, no forms. A page may only tighten its policy, so no later script can undo it.
export function restrict() {
  const meta = document.createElement('meta');
  meta.httpEquiv = 'Content-Security-Policy';
  meta.content = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'none'",
    "frame-src 'none'",
  ].join('; ');
  document.head.append(meta);
}
