# Writes SQL that makes the users of a Secret: each of its keys is a user, the value the password.
# Arguments: the Secret's name, where it is mounted, the users' host, the file to write, the name of the
# user who gets a password elsewhere or nothing, and the file with the SQL that follows or nothing.
set -eu
LC_ALL=C
secret=$1 mounted=$2 host=$3 out=$4 taken=$5 following=$6
newline='
'
carriage=$(printf '\r')

refuse() {
  echo "Secret $secret: $1" >&2
  exit 1
}

# Sets literal to $1, as it stands between single quotes in SQL.
quote() {
  rest=$1 literal=
  while [ -n "$rest" ]; do
    after=${rest#?}
    byte=${rest%"$after"}
    case $byte in
      \\ | \') literal=$literal\\$byte ;;
      *) literal=$literal$byte ;;
    esac
    rest=$after
  done
}

exec >"$out"
found=
for file in "$mounted"/* "$mounted"/.[!.]*; do
  [ -f "$file" ] || continue
  found=yes
  user=${file##*/}
  password=$(cat "$file")
  [ "$user" != "$taken" ] || refuse "key $user: its password is generated, by spec.initialization.rootPassword: remove the key"
  [ ${#user} -le 32 ] || refuse "key $user: a user's name may have 32 characters: shorten it"
  [ ${#password} -le 1024 ] || refuse "key $user: the password is longer than 1024 bytes: is it one? shorten it"
  case $password in
    '') refuse "key $user: the password is empty: set one" ;;
    *"$newline"*) refuse "key $user: the password has a second line: a password is one line" ;;
    *"$carriage"*) refuse "key $user: the password has a carriage return, as a file from Windows has at its end: remove it" ;;
  esac
  quote "$password"
  if [ "$user" != root ]; then
    printf "CREATE USER IF NOT EXISTS '%s'@'%s' IDENTIFIED BY '%s';\n" "$user" "$host" "$literal"
    continue
  fi
  # TiDB has made root@% itself.
  printf "ALTER USER 'root'@'%%' IDENTIFIED BY '%s';\n" "$literal"
  [ "$host" = % ] || printf "RENAME USER 'root'@'%%' TO 'root'@'%s';\n" "$host"
done
[ -n "$found" ] || refuse "it has no keys: add one for each user, with the password as its value"
[ -z "$following" ] || cat "$following"
