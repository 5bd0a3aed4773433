# What the examples of docs/cli.md need around them.
bin=$(command -v ressac)
export HOME=$PWD
mkdir -p .local/share/bash-completion/completions .zfunc .config/fish/completions
echo '{}' | tee order.json > x.json
cp examples/edi/invoic.edi invoice.edi

# A partner that takes everything, one that refuses everything, and a gateway that has met it.
$bin mock --bind 127.0.0.1:7171 --control off --script '200 x*' 2>mock.log &
$bin mock --bind 127.0.0.1:7172 --control off --script '422 x*' 2>refuses.log &
cat > gateway.toml <<'TOML'
[partner.acme]
url = "http://127.0.0.1:7172/inbox"
TOML
$bin serve gateway.toml 2>gateway.log &
sleep 1
for n in 1 2 3 4 5 6 7 8; do
  curl -sS -d "$n" http://127.0.0.1:7070/v1/partners/acme/messages | jq -r .id >> ids
done
sleep 1
dead() { sed -n "$(($1 + 1))p" ids; }

# Files for `serve` and `check`; another port than the gateway's above.
cat > base.toml <<'TOML'
[policy.payments]
extends = "durable"
[gateway]
listen = "127.0.0.1:0"
store = "sqlite:other.db"
TOML
cat > partners.toml <<'TOML'
[partner.acme]
url = "http://127.0.0.1:7172/inbox"
policy = "payments"
idempotency = { header = "Idempotency-Key", ttl = "48h" }
TOML
cat base.toml partners.toml > ressac.toml
cat > partner.toml <<'TOML'
version = 1
[[route]]
name = "inbox"
path = "/inbox"
script = "201 create x*"
TOML

# What runs until it is stopped is stopped, by one signal to it alone; the demo is scaled down; a prompt is answered.
ressac() {
  case "$*" in
    *--check* | *help*) "$bin" "$@" ;;
    serve* | mock*) timeout --foreground --preserve-status -s TERM 1.5 "$bin" "$@" ;;
    # In a debug build a search of sixty tries takes minutes.
    sim\ suggest*--tries* | sim\ suggest*--help*) "$bin" "$@" ;;
    sim\ compare*) "$bin" "$@" --seeds 1 ;;
    sim\ suggest*) "$bin" "$@" --tries 3 --seeds 1 ;;
    demo*--messages*) "$bin" "$@" ;;
    demo*) "$bin" "$@" --messages 5 --outage 200ms --retry-after 1 ;;
    *--all*--yes*) "$bin" "$@" ;;
    *--all*) "$bin" "$@" --yes ;;
    *) "$bin" "$@" ;;
  esac
}
